#ifndef ESDP_BINDINGS_PYTHON_CORE_OPTIONS_H_
#define ESDP_BINDINGS_PYTHON_CORE_OPTIONS_H_

#include <pybind11/pybind11.h>

#include <string>

#include "esdp/options.h"
#include "esdp/socket.h"
#include "esdp/stream.h"

// The option structures, filled from keyword arguments that have their members' names.
//
//   Owns:     nothing.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    bytes; seconds as float.
//   Errors:   TypeError for a name that is no option, or a value of another type; ValueError for a
//             word that means nothing.

namespace esdp::python {

// `log` and `world_of` are the caller's to set: "world_of" must not be in `arguments` any more.
ContextOptions ContextOptionsFrom(const pybind11::dict& arguments);
SocketOptions SocketOptionsFrom(const pybind11::dict& arguments);
QueueOptions QueueOptionsFrom(const pybind11::dict& arguments);
// What `arguments` do not name stays as in `before`.
StreamOptions StreamOptionsFrom(const pybind11::dict& arguments, const StreamOptions& before);
pybind11::dict StreamOptionsAsDict(const StreamOptions& options);

// One option of a socket by its member's name in SocketOptions.
Option OptionFrom(const std::string& name, pybind11::handle value);
OptionName OptionNameFrom(const std::string& name);
pybind11::object ValueOf(const Option& option);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_OPTIONS_H_
