#ifndef ESDP_BINDINGS_PYTHON_CORE_ERRORS_H_
#define ESDP_BINDINGS_PYTHON_CORE_ERRORS_H_

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/event.h"
#include "esdp/status.h"

// How a Status becomes an exception of esdp._errors, which all come from OSError.
//
//   Owns:     the classes, for the life of the module.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    -
//   Errors:   Raise and Check throw, for pybind11 to hand on.

namespace esdp::python {

// `make(kind, errno, text)` makes the exception. Called once, by the package.
void SetExceptionMaker(pybind11::object make);

pybind11::object ExceptionOf(const absl::Status& status);
// With the errno of the event, which may be the system's own.
pybind11::object ExceptionOf(const Event& event);
[[noreturn]] void Raise(const pybind11::object& exception);
[[noreturn]] void Raise(const absl::Status& status);
// The caller's own fault, in words of the binding.
[[noreturn]] void RaiseKind(ErrorKind kind, int sys_errno, const std::string& text);
[[noreturn]] void RaiseTypeError(const std::string& text);
[[noreturn]] void RaiseValueError(const std::string& text);

inline void Check(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}

template <typename T>
T Value(absl::StatusOr<T> answer) {
  if (!answer.ok()) Raise(answer.status());
  return *std::move(answer);
}

// TypeError, with what was expected, where pybind11 would say less.
template <typename T>
T Cast(pybind11::handle value, const char* expected) {
  try {
    return value.cast<T>();
  } catch (const pybind11::cast_error&) {
    RaiseTypeError(std::string(expected) + ", not " + Py_TYPE(value.ptr())->tp_name);
  }
}

// Gives an exception that nobody can catch to sys.unraisablehook.
void TellUnraisable(pybind11::error_already_set& error) noexcept;
void TellUnraisable(const std::exception& error) noexcept;

// Says that something was left open. Never throws: a warning that is made an error goes to
// sys.unraisablehook.
void WarnUnclosed(const std::string& what) noexcept;

// What a destructor, or the end of the interpreter, still does: an exception that it raises goes to
// sys.unraisablehook, since nobody is left to catch it.
template <typename Call>
void Quietly(Call call) noexcept {
  try {
    call();
  } catch (pybind11::error_already_set& error) {
    TellUnraisable(error);
  } catch (const std::exception& error) {
    TellUnraisable(error);
  }
}

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_ERRORS_H_
