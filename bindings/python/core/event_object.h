#ifndef ESDP_BINDINGS_PYTHON_CORE_EVENT_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_EVENT_OBJECT_H_

#include <pybind11/pybind11.h>

#include <memory>

#include "esdp/event.h"

namespace esdp::python {

class SocketObject;

// esdp.OpId: names one accepted operation, and can ask it to end.
//
//   Owns:     nothing; the socket may go.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    -
//   Errors:   exceptions.
struct OperationName {
  OpId id = OpId::kNone;
  std::weak_ptr<SocketObject> socket;
};

// esdp.Event: one completion, with what the application gave to its operation.
struct EventObject {
  Event event;
  pybind11::object cookie;
  std::weak_ptr<SocketObject> socket;
};

void DefineEvent(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_EVENT_OBJECT_H_
