#include "bindings/python/core/signatures.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace py = pybind11;

namespace esdp::python {
namespace {

using Function = py::detail::function_record;

// Nothing for what pybind11 has not made.
Function* FunctionOf(py::handle method) {
  const py::handle function = py::detail::get_function(method);
  if (!function || PyCFunction_Check(function.ptr()) == 0) return nullptr;
  PyObject* const self = PyCFunction_GET_SELF(function.ptr());
  if (self == nullptr || PyCapsule_CheckExact(self) == 0) return nullptr;
  if (PyCapsule_GetName(self) != nullptr) return nullptr;
  return py::reinterpret_borrow<py::capsule>(self).get_pointer<Function>();
}

std::string NameOf(const Function& function, size_t place) {
  if (place < function.args.size() && function.args[place].name != nullptr) {
    return function.args[place].name;
  }
  if (place == 0 && function.is_method) return "self";
  return "value" + std::to_string(place);
}

std::string DefaultOf(const Function& function, size_t place) {
  if (place >= function.args.size() || !function.args[place].value) return "";
  return "=" + py::repr(function.args[place].value).cast<std::string>();
}

std::string SignatureOf(const Function& function) {
  std::string text;
  const auto append = [&text](const std::string& next) {
    text += text.empty() ? next : ", " + next;
  };
  size_t named = function.nargs;
  if (function.has_args) --named;
  if (function.has_kwargs) --named;
  for (size_t place = 0; place < named; ++place) {
    if (place == function.nargs_pos && !function.has_args) append("*");
    append(NameOf(function, place) + DefaultOf(function, place));
  }
  if (function.has_kwargs) append("**options");
  return "(" + text + ")";
}

void GiveSignature(py::handle method) {
  const Function* const function = FunctionOf(method);
  if (function == nullptr) return;
  std::string text = std::string(function->name) + SignatureOf(*function) + "\n--\n\n";
  if (function->doc != nullptr) text += function->doc;
  // pybind11 frees it with the function.
  PyMethodDef* const definition = function->def;
  std::free(const_cast<char*>(definition->ml_doc));
  definition->ml_doc = strdup(text.c_str());
}

}  // namespace

void GiveSignatures(py::module_& module) {
  for (const auto& [name, type] : py::dict(module.attr("__dict__"))) {
    if (PyType_Check(type.ptr()) == 0) continue;
    for (const auto& [member, value] : py::dict(type.attr("__dict__"))) {
      PyObject* const function = Py_TYPE(value.ptr()) == &PyStaticMethod_Type
                                     ? PyObject_GetAttrString(value.ptr(), "__func__")
                                     : Py_NewRef(value.ptr());
      GiveSignature(py::reinterpret_steal<py::object>(function));
    }
  }
}

}  // namespace esdp::python
