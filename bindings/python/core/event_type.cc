#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/event_object.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/socket_object.h"

// OpId and Event as Python sees them.

namespace py = pybind11;

namespace esdp::python {

Offer::~Offer() {
  const std::shared_ptr<ContextObject> context = context_.lock();
  // One that was taken is not found.
  if (context != nullptr) (void)context->handle().TakeAccepted(accepted_);
}

namespace {

bool Has(const EventObject& self, EventFlag flag) { return (self.event.flags & flag) != 0; }

py::object SocketOf(const std::weak_ptr<SocketObject>& socket) {
  const auto alive = socket.lock();
  return alive == nullptr ? py::object(py::none()) : py::cast(alive);
}

py::object ErrorOf(const EventObject& self) {
  if (self.event.ok()) return py::none();
  py::object exception = ExceptionOf(self.event);
  exception.attr("event") = py::cast(self);
  return exception;
}

std::string DescribeEvent(const EventObject& self) {
  const Event& event = self.event;
  std::string text = std::string("<esdp.Event ") + ToString(event.type) + ", " +
                     std::to_string(event.bytes) + " bytes";
  if (event.eof()) text += ", eof";
  if (!event.terminal()) text += ", more";
  if (!event.ok()) text += ", " + std::string(ToString(event.kind));
  return text + ">";
}

void DefineOperationName(py::module_& module) {
  py::class_<OperationName>(module, "OpId",
                            "Names one accepted operation: it will have exactly one terminal "
                            "event. An old one is never mistaken for a new one.")
      .def(
          "cancel",
          [](const OperationName& self, bool abort) {
            const auto socket = self.socket.lock();
            return socket != nullptr && socket->Cancel(self.id, abort);
          },
          py::arg("abort") = false,
          "Asks the operation to end; its event tells what became of it. False: it has ended. "
          "abort=True resets the connection when it has partly gone.")
      .def("__int__", [](const OperationName& self) { return static_cast<uint64_t>(self.id); })
      .def("__index__", [](const OperationName& self) { return static_cast<uint64_t>(self.id); })
      .def("__hash__", [](const OperationName& self) { return static_cast<uint64_t>(self.id); })
      .def("__eq__",
           [](const OperationName& self, const py::object& other) {
             return py::isinstance<OperationName>(other) &&
                    other.cast<const OperationName&>().id == self.id;
           })
      .def("__repr__", [](const OperationName& self) {
        return "<esdp.OpId " + std::to_string(static_cast<uint64_t>(self.id)) + ">";
      });
}

template <typename Class>
void DefineFlags(Class& type) {
  const auto flag = [&type](const char* name, EventFlag bit, const char* text) {
    type.def_property_readonly(
        name, [bit](const EventObject& self) { return Has(self, bit); }, text);
  };
  flag("terminal", kTerminal,
       "The last of its operation: what it lent is the application's again.");
  flag("more", kMore, "Not the last: an accept of several goes on.");
  flag("eof", kEof, "Receive: the peer has shut down, and no byte is left after these.");
  flag("wait_all", kWaitAll, "Receive: it was asked to be filled.");
  flag("zero_copy", kZeroCopy, "Some of its bytes went by RDMA.");
  flag("copied", kCopied, "Some of its bytes went in messages.");
  flag("cancelled", kCancelled, "Ended by a cancel or its deadline.");
  flag("peer_reset", kPeerReset, "Ended because the peer went away without shutting down.");
  flag("urgent", kUrgent, "Receive: its last byte is urgent.");
  flag("written", kWritten, "Receive: some of its bytes were written by the peer.");
}

template <typename Class>
void DefineAmounts(Class& type) {
  type.def_property_readonly(
          "bytes", [](const EventObject& self) { return self.event.bytes; },
          "Moved; valid also with an error.")
      .def_property_readonly(
          "stream_offset", [](const EventObject& self) { return self.event.stream_offset; },
          "Of its first byte, from the start of that direction.")
      .def_property_readonly(
          "bytes_zero_copy", [](const EventObject& self) { return self.event.bytes_zero_copy; },
          "How many of its bytes went by RDMA.")
      .def_property_readonly(
          "file_offset", [](const EventObject& self) { return self.event.file_offset; },
          "Of a file that is sent: behind the last byte that went, in the range file_range. Of one "
          "that is received: behind the last byte that was written.")
      .def_property_readonly(
          "file_range", [](const EventObject& self) { return self.event.file_range; },
          "Of a file that is sent: the index of the range that file_offset is in.");
}

}  // namespace

void DefineEvent(py::module_& module) {
  DefineOperationName(module);
  py::class_<EventObject> type(module, "Event", Collected<EventObject>(),
                               "One completion, from EventQueue.get.");
  DefineFlags(type);
  DefineAmounts(type);
  type.def_property_readonly(
          "type", [](const EventObject& self) { return ToString(self.event.type); },
          "'connect', 'accept', 'send', 'recv', 'sendv', 'recvv', 'shutdown', 'close', 'urgent', "
          "'suspend', 'sendfile', 'recvfile'.")
      .def_property_readonly(
          "ok", [](const EventObject& self) { return self.event.ok(); },
          "Whether it has ended well.")
      .def_property_readonly("error", &ErrorOf, "The exception that says why, or None.")
      .def(
          "check",
          [](const py::object& self) {
            const auto& ended = self.cast<const EventObject&>();
            if (!ended.event.ok()) Raise(ErrorOf(ended));
            return self;
          },
          "The event itself, or raises its error.")
      .def_property_readonly(
          "errno", [](const EventObject& self) { return self.event.sys_errno; },
          "The errno that is nearest to the error, of a file the system's own; 0 when it has ended "
          "well.")
      .def_property_readonly(
          "cookie", [](const EventObject& self) { return self.cookie; },
          "The object that was given when it was posted, or None.")
      .def_property_readonly(
          "op",
          [](const EventObject& self) {
            return OperationName{self.event.op, self.socket};
          },
          "The name of the operation, as the call that posted it gave it.")
      .def_property_readonly(
          "socket", [](const EventObject& self) { return SocketOf(self.socket); },
          "The socket it was posted on, or None when that is gone.")
      .def_property_readonly(
          "accepted_peer",
          [](const EventObject& self) { return TupleOf(self.event.accepted_peer); },
          "Accept: who has connected, as (host, port).")
      .def_property_readonly(
          "has_connection",
          [](const EventObject& self) { return self.event.accepted != SocketId::kNone; },
          "Whether Context.take_accepted has something to take.")
      .def("__repr__", &DescribeEvent);
}

}  // namespace esdp::python
