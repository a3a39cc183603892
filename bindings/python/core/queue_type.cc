#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/queue_object.h"
#include "bindings/python/core/stats_type.h"

// EventQueue as Python sees it.

namespace py = pybind11;

namespace esdp::python {
namespace {

std::string DescribeQueue(QueueObject& self) {
  if (self.closed()) return "<esdp.EventQueue, closed>";
  return "<esdp.EventQueue, " + std::to_string(self.outstanding()) + " operations outstanding>";
}

}  // namespace

void DefineQueue(py::module_& module) {
  using Self = std::shared_ptr<QueueObject>;
  py::class_<QueueObject, Self>(
      module, "EventQueue", Collected<QueueObject>(),
      "Holds the events of operations that have ended. It never overflows: a post that finds no "
      "slot raises QueueFullError. Any thread may take events; each goes to one of them.")
      .def("get", &QueueObject::Get, py::arg("min") = 1, py::arg("timeout") = py::none(),
           py::arg("max") = 64,
           "A list of `min` to `max` events, oldest first, waiting for them with the interpreter "
           "lock released. TimeoutError when fewer came in time, CancelledError after wake(); "
           "none is lost then.")
      .def("get_nowait", &QueueObject::GetNow, py::arg("max") = 64,
           "The events that are there, at most `max`; perhaps none.")
      .def(
          "fileno", [](QueueObject& self) { return self.handle().fd(); },
          "A descriptor for select, poll and epoll: readable while events wait. -1 once closed.")
      .def("wake", &QueueObject::Wake, "Ends one get, the running or the next one.")
      .def("resize", &QueueObject::Resize, py::arg("depth"),
           "Changes how many events it can hold. BusyError when more are there or promised.")
      .def(
          "stats", [](QueueObject& self) { return self.handle().Stats(); }, "Its counters now.")
      .def("close", &QueueObject::Close, "BusyError while operations name it.")
      .def_property_readonly("outstanding", &QueueObject::outstanding,
                             "Operations whose terminal event was not yet taken.")
      .def_property_readonly("closed", &QueueObject::closed,
                             "Whether it, or its Context, has been closed.")
      .def("__repr__", &DescribeQueue)
      .def("__enter__", [](const Self& self) { return self; })
      // With an error on its way the queue may be left with operations: the Context ends them.
      .def("__exit__",
           [](QueueObject& self, const py::object& type, const py::object&, const py::object&) {
             if (type.is_none() || self.outstanding() == 0) self.Close();
           })
      .def("_bind_to_loop", &QueueObject::BindToLoop, py::arg("loop"), py::arg("make_future"))
      .def("_deliver", &QueueObject::Deliver, py::arg("max") = 256)
      .def("_cancel_future", &QueueObject::CancelFuture, py::arg("future"));
}

}  // namespace esdp::python
