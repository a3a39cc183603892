#include "bindings/python/core/errors.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace py = pybind11;

namespace esdp::python {
namespace {

// Never destroyed: a late thread may still raise while the interpreter ends.
py::object& Maker() {
  static auto* const maker = new py::object();
  return *maker;
}

py::object MakeException(ErrorKind kind, int sys_errno, const std::string& text) {
  return Maker()(static_cast<int>(kind), sys_errno, text);
}

}  // namespace

void SetExceptionMaker(py::object make) { Maker() = std::move(make); }

py::object ExceptionOf(const absl::Status& status) {
  const ErrorDetail detail = DetailOf(status);
  const std::string text(status.message().data(), status.message().size());
  if (detail.kind == ErrorKind::kNone) return MakeException(ErrorKind::kInternal, EIO, text);
  return MakeException(detail.kind, detail.sys_errno, text);
}

py::object ExceptionOf(const Event& event) {
  const absl::Status status = event.status();
  return MakeException(event.kind, event.sys_errno,
                       std::string(status.message().data(), status.message().size()));
}

void Raise(const py::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

void Raise(const absl::Status& status) { Raise(ExceptionOf(status)); }

void RaiseKind(ErrorKind kind, int sys_errno, const std::string& text) {
  Raise(MakeException(kind, sys_errno, text));
}

void RaiseTypeError(const std::string& text) { throw py::type_error(text); }

void RaiseValueError(const std::string& text) { throw py::value_error(text); }

void TellUnraisable(py::error_already_set& error) noexcept {
  PyErr_Restore(error.type().inc_ref().ptr(), error.value().inc_ref().ptr(),
                error.trace().inc_ref().ptr());
  PyErr_WriteUnraisable(nullptr);
}

void TellUnraisable(const std::exception& error) noexcept {
  PyErr_SetString(PyExc_RuntimeError, error.what());
  PyErr_WriteUnraisable(nullptr);
}

void WarnUnclosed(const std::string& what) noexcept {
  if (Py_IsInitialized() == 0) return;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyErr_ResourceWarning(nullptr, 1, "unclosed esdp.%s", what.c_str()) != 0) {
    PyErr_WriteUnraisable(nullptr);
  }
  PyErr_Restore(type, value, traceback);
}

}  // namespace esdp::python
