#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/options.h"

// Context as Python sees it.

namespace py = pybind11;

namespace esdp::python {
namespace {

using py::arg;
using Self = std::shared_ptr<ContextObject>;
using ContextClass = py::class_<ContextObject, Self>;

// What a `with` gives a connection to drain, in seconds.
constexpr double kGrace = 10;

void Exit(ContextObject& self, const py::object& type, const py::object&, const py::object&) {
  if (type.is_none()) return self.Close(kGrace);
  try {
    self.Close(0);
  } catch (py::error_already_set&) {
    // What is on its way already says more.
  }
}

void DefineChildren(ContextClass& type) {
  type.def("register", &ContextObject::Register, arg("memory"), arg("writable") = py::none(),
           arg("exposure") = "per_operation",
           "Registers the memory of a bytearray, mmap, array, NumPy array or anything else with a "
           "contiguous buffer, where it lies. Read-only memory (bytes) can only be sent from. "
           "RegistrationError names the limit, what is in use and how to raise it.")
      .def("register_dmabuf", &ContextObject::RegisterDmaBuf, arg("fd"), arg("offset"),
           arg("length"), arg("exposure") = "per_operation",
           "Registers a dma-buf, such as memory of a GPU, to send from: the device reads it, and "
           "nothing copies it. Its bytes have no view here. The descriptor may be closed "
           "afterwards. UnsupportedError where the fabric or the device has no way to it, "
           "ValueError for no bytes or the exposure none, RegistrationError as register.")
      .def("allocate", &ContextObject::Allocate, arg("bytes"), arg("exposure") = "per_operation",
           arg("shareable") = "auto",
           "Registered, page-aligned, zeroed memory of its own: numpy.frombuffer(region.view()). "
           "What is "
           "shareable ('auto', 'never', 'always') can be given to another program on this host to "
           "read.")
      .def("queue", &ContextObject::CreateQueue,
           "An EventQueue: depth (events, 256), wait ('adaptive', 'notify', 'busy_poll'), spin "
           "(seconds).")
      .def("socket", &ContextObject::CreateSocket, arg("family") = "ipv4",
           "A Socket, for 'ipv4' or 'ipv6', with the options of SocketOptions as keywords.")
      .def("take_accepted", &ContextObject::TakeAccepted, arg("event"),
           "The connection of an accept event, once. What is not taken is aborted when its "
           "listener closes.");
}

}  // namespace

void DefineContext(py::module_& module) {
  ContextClass type(module, "Context",
                    "Opens one fabric, and holds what is made through it. The options are those of "
                    "ContextOptions, as keywords: fabric ('auto', 'qpip', 'sim:42', ...), progress "
                    "('thread' or 'manual'), zcopy_send_min, ... Lines of the log go to "
                    "logging.getLogger('esdp').");
  type.def(py::init(&ContextObject::Open));
  DefineChildren(type);
  type.def(
          "now",
          [](ContextObject& self) {
            return absl::ToDoubleSeconds(self.handle().Now() - absl::UnixEpoch());
          },
          "Seconds since 1970 on the Context's clock, which may be a simulated one.")
      .def("progress", &ContextObject::MoveFor, arg("max") = 0.0,
           "Manual progress: moves what can move, for at most `max` seconds; returns how many "
           "rounds did something.")
      .def(
          "stats", [](ContextObject& self) { return self.handle().Stats(); }, "What it holds now.")
      .def("close", &ContextObject::Close, arg("timeout") = kGrace,
           "Closes sockets gracefully for `timeout` seconds at most, then queues, then regions. "
           "Every pending operation ends. TimeoutError when something had to be aborted.")
      .def_property_readonly("closed", &ContextObject::closed, "Whether close was called.")
      .def_property_readonly("virtual_time", &ContextObject::virtual_time,
                             "Whether its clock is a simulated one: fabric 'sim'.")
      .def_property_readonly(
          "transports",
          [](ContextObject& self) {
            std::vector<std::string> names;
            for (const Transport each : self.handle().transports()) {
              names.emplace_back(ToString(each));
            }
            return names;
          },
          "The fabrics that it has opened, by the names of Socket.transport, in the order in which "
          "a connect tries them.")
      .def("__enter__", [](const Self& self) { return self; })
      .def("__exit__", &Exit)
      .def_static(
          "diagnose",
          [](const py::kwargs& arguments) {
            return Context::Diagnose(ContextOptionsFrom(arguments));
          },
          "What Context(...) with these options would find. Never fails.")
      .def("__repr__", [](const ContextObject& self) {
        return std::string("<esdp.Context") + (self.closed() ? ", closed>" : ">");
      });
}

}  // namespace esdp::python
