#include "bindings/python/core/stats_type.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "esdp/context.h"

// Plain values to read.

namespace py = pybind11;

namespace esdp::python {
namespace {

// A class of counters: each is a property, and asdict() has them all.
template <typename T>
class Counters {
 public:
  Counters(py::module_& module, const char* name, const char* text) : type_(module, name, text) {
    type_.attr("_fields") = py::list();
    type_.def(
        "asdict",
        [](const py::object& self) {
          py::dict all;
          for (const py::handle field : self.attr("_fields")) all[field] = self.attr(field);
          return all;
        },
        "All of them, by name.");
    type_.def("__repr__", [name = std::string(name)](const py::object& self) {
      return "esdp." + name + py::str(self.attr("asdict")()).cast<std::string>();
    });
  }

  template <typename Number>
  Counters& Count(const char* name, Number T::*member) {
    type_.def_readonly(name, member);
    py::list(type_.attr("_fields")).append(name);
    return *this;
  }

 private:
  py::class_<T> type_;
};

void DefineSocketStats(py::module_& module) {
  Counters<SocketStats>(module, "SocketStats", "Counters of one socket since it began.")
      .Count("bytes_sent_copied", &SocketStats::bytes_sent_copied)
      .Count("bytes_sent_zero_copy", &SocketStats::bytes_sent_zero_copy)
      .Count("bytes_received_copied", &SocketStats::bytes_received_copied)
      .Count("bytes_received_zero_copy", &SocketStats::bytes_received_zero_copy)
      .Count("sends_copied", &SocketStats::sends_copied)
      .Count("sends_zero_copy", &SocketStats::sends_zero_copy)
      .Count("receives_copied", &SocketStats::receives_copied)
      .Count("receives_zero_copy", &SocketStats::receives_zero_copy)
      .Count("payload_copies", &SocketStats::payload_copies)
      .Count("payload_copy_bytes", &SocketStats::payload_copy_bytes)
      .Count("messages_sent", &SocketStats::messages_sent)
      .Count("messages_received", &SocketStats::messages_received)
      .Count("source_adverts_sent", &SocketStats::source_adverts_sent)
      .Count("source_adverts_received", &SocketStats::source_adverts_received)
      .Count("source_adverts_lost", &SocketStats::source_adverts_lost)
      .Count("sink_adverts_sent", &SocketStats::sink_adverts_sent)
      .Count("sink_adverts_received", &SocketStats::sink_adverts_received)
      .Count("sink_cancels_sent", &SocketStats::sink_cancels_sent)
      .Count("sink_cancels_received", &SocketStats::sink_cancels_received)
      .Count("stale_adverts", &SocketStats::stale_adverts)
      .Count("mode_changes_sent", &SocketStats::mode_changes_sent)
      .Count("mode_changes_received", &SocketStats::mode_changes_received)
      .Count("send_sm_sent", &SocketStats::send_sm_sent)
      .Count("send_sm_received", &SocketStats::send_sm_received)
      .Count("adaptive_threshold", &SocketStats::adaptive_threshold)
      .Count("credit_stalls", &SocketStats::credit_stalls)
      .Count("credit_updates_sent", &SocketStats::credit_updates_sent)
      .Count("receive_resizes", &SocketStats::receive_resizes)
      .Count("peer_resizes", &SocketStats::peer_resizes)
      .Count("urgent_sent", &SocketStats::urgent_sent)
      .Count("urgent_received", &SocketStats::urgent_received)
      .Count("expose_failures", &SocketStats::expose_failures)
      .Count("resumptions", &SocketStats::resumptions)
      .Count("returns_rejected", &SocketStats::returns_rejected)
      .Count("ended_before_accept", &SocketStats::ended_before_accept);
}

void DefineQueueStats(py::module_& module) {
  Counters<QueueStats>(module, "QueueStats", "Counters of one queue.")
      .Count("depth", &QueueStats::depth)
      .Count("waiting", &QueueStats::waiting)
      .Count("reserved", &QueueStats::reserved)
      .Count("waiting_max", &QueueStats::waiting_max)
      .Count("events", &QueueStats::events)
      .Count("full", &QueueStats::full)
      .Count("starved", &QueueStats::starved);
}

void DefineContextStats(py::module_& module) {
  Counters<ContextStats>(module, "ContextStats", "What a Context holds.")
      .Count("regions", &ContextStats::regions)
      .Count("region_bytes", &ContextStats::region_bytes)
      .Count("sockets", &ContextStats::sockets)
      .Count("queues", &ContextStats::queues)
      .Count("operations", &ContextStats::operations)
      .Count("operations_posted", &ContextStats::operations_posted)
      .Count("bounce_bytes", &ContextStats::bounce_bytes)
      .Count("accepts_given_up", &ContextStats::accepts_given_up)
      .Count("ended_before_accept", &ContextStats::ended_before_accept)
      .Count("rejected_backlog", &ContextStats::rejected_backlog)
      .Count("rejected_half_open", &ContextStats::rejected_half_open)
      .Count("rejected_connections", &ContextStats::rejected_connections)
      .Count("rejected_address", &ContextStats::rejected_address)
      .Count("rejected_rate", &ContextStats::rejected_rate);
}

void DefineDiagnostics(py::module_& module) {
  py::class_<FabricReport>(module, "FabricReport", "One fabric that this build knows.")
      .def_readonly("name", &FabricReport::name)
      .def_readonly("available", &FabricReport::available)
      .def_readonly("text", &FabricReport::text, "What it is, or why it is not there.");
  py::class_<LimitReport>(module, "LimitReport", "One limit of the Context that would be opened.")
      .def_readonly("name", &LimitReport::name, "The option's.")
      .def_readonly("value", &LimitReport::value)
      .def_readonly("text", &LimitReport::text, "What it bounds.");
  py::class_<DiagnosticsReport>(module, "DiagnosticsReport",
                                "What Context(...) would find; str() has it as text.")
      .def_readonly("fabrics", &DiagnosticsReport::fabrics)
      .def_readonly("chosen", &DiagnosticsReport::chosen)
      .def_readonly("reason", &DiagnosticsReport::reason)
      .def_readonly("memlock_soft", &DiagnosticsReport::memlock_soft)
      .def_readonly("memlock_hard", &DiagnosticsReport::memlock_hard)
      .def_readonly("limits", &DiagnosticsReport::limits)
      .def("__str__", &DiagnosticsReport::ToString);
}

}  // namespace

void DefineStats(py::module_& module) {
  DefineSocketStats(module);
  DefineQueueStats(module);
  DefineContextStats(module);
  DefineDiagnostics(module);
}

}  // namespace esdp::python
