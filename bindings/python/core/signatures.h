#ifndef ESDP_BINDINGS_PYTHON_CORE_SIGNATURES_H_
#define ESDP_BINDINGS_PYTHON_CORE_SIGNATURES_H_

#include <pybind11/pybind11.h>

namespace esdp::python {

// Gives every method of the module's classes a docstring that begins with its
// signature, in the form that inspect.signature and help read: pybind11's own
// is only for people.
//
//   Owns:     nothing; the text belongs to the method.
//   Threads:  with the interpreter lock held, once, when the module is made.
//   Blocks:   never.
//   Units:    -
//   Errors:   exceptions.
void GiveSignatures(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_SIGNATURES_H_
