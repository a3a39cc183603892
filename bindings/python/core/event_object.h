#ifndef ESDP_BINDINGS_PYTHON_CORE_EVENT_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_EVENT_OBJECT_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "bindings/python/core/collected.h"
#include "esdp/event.h"

namespace esdp::python {

class ContextObject;
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

// An accepted connection that an esdp.Event brings. Who drops the event without taking it does not
// want it: it is aborted, as a Socket that is dropped.
class Offer {
 public:
  Offer(std::weak_ptr<ContextObject> context, SocketId accepted)
      : context_(std::move(context)), accepted_(accepted) {}
  ~Offer();
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

 private:
  const std::weak_ptr<ContextObject> context_;
  const SocketId accepted_;
};

// esdp.Event: one completion, with what the application gave to its operation.
struct EventObject {
  Event event;
  pybind11::object cookie;
  std::weak_ptr<SocketObject> socket;
  std::shared_ptr<Offer> offer;  // of kAccept; dropped with the last copy

  int Visit(const Visitor& visit) const { return visit(cookie); }
  void Clear() noexcept { cookie = pybind11::none(); }
};

void DefineEvent(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_EVENT_OBJECT_H_
