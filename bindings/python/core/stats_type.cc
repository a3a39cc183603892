#include "bindings/python/core/stats_type.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "esdp/context.h"
#include "esdp/stream.h"

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

  // What counts something else; it is in no list.
  template <typename Part>
  Counters& Show(const char* name, Part T::*member, const char* text) {
    type_.def_readonly(name, member, text);
    return *this;
  }

  template <typename Number>
  Counters& Count(const char* name, Number T::*member, const char* text) {
    type_.def_readonly(name, member, text);
    py::list(type_.attr("_fields")).append(name);
    return *this;
  }

 private:
  py::class_<T> type_;
};

void CountTransfers(Counters<SocketStats>& counters) {
  counters.Count("bytes_sent_copied", &SocketStats::bytes_sent_copied, "Bytes sent in messages.")
      .Count("bytes_sent_zero_copy", &SocketStats::bytes_sent_zero_copy,
             "Bytes sent by RDMA, straight from registered memory.")
      .Count("bytes_received_copied", &SocketStats::bytes_received_copied,
             "Bytes received in messages.")
      .Count("bytes_received_zero_copy", &SocketStats::bytes_received_zero_copy,
             "Bytes received by RDMA, straight into registered memory.")
      .Count("sends_copied", &SocketStats::sends_copied,
             "Sends most of whose bytes went in messages.")
      .Count("sends_zero_copy", &SocketStats::sends_zero_copy,
             "Sends most of whose bytes went by RDMA.")
      .Count("receives_copied", &SocketStats::receives_copied,
             "Receives most of whose bytes came in messages.")
      .Count("receives_zero_copy", &SocketStats::receives_zero_copy,
             "Receives most of whose bytes came by RDMA.")
      .Count("payload_copies", &SocketStats::payload_copies,
             "Copies of payload by this processor, in both directions.")
      .Count("payload_copy_bytes", &SocketStats::payload_copy_bytes, "Bytes in payload_copies.")
      .Count("messages_sent", &SocketStats::messages_sent, "SDP messages sent.")
      .Count("messages_received", &SocketStats::messages_received, "SDP messages received.");
}

void CountAdverts(Counters<SocketStats>& counters) {
  counters
      .Count("source_adverts_sent", &SocketStats::source_adverts_sent, "SrcAvail messages sent.")
      .Count("source_adverts_received", &SocketStats::source_adverts_received,
             "SrcAvail messages received.")
      .Count("source_adverts_lost", &SocketStats::source_adverts_lost,
             "SrcAvail messages of ours that crossed the peer's SinkAvail and were void.")
      .Count("sink_adverts_sent", &SocketStats::sink_adverts_sent,
             "SinkAvail messages sent: receives that the peer may write to.")
      .Count("sink_adverts_received", &SocketStats::sink_adverts_received,
             "SinkAvail messages received.")
      .Count("sink_cancels_sent", &SocketStats::sink_cancels_sent, "SinkAvailCancel messages sent.")
      .Count("sink_cancels_received", &SocketStats::sink_cancels_received,
             "SinkAvailCancel messages received.")
      .Count("stale_adverts", &SocketStats::stale_adverts,
             "SinkAvail messages of the peer that data of ours had crossed.")
      .Count("mode_changes_sent", &SocketStats::mode_changes_sent, "ModeChange messages sent.")
      .Count("mode_changes_received", &SocketStats::mode_changes_received,
             "ModeChange messages received.")
      .Count("send_sm_sent", &SocketStats::send_sm_sent,
             "SendSm messages sent: adverts that were to come in messages instead.")
      .Count("send_sm_received", &SocketStats::send_sm_received, "SendSm messages received.");
}

void CountPath(Counters<SocketStats>& counters) {
  counters
      .Count("adaptive_threshold", &SocketStats::adaptive_threshold,
             "The threshold in force for sends, in bytes; 0: none was learned.")
      .Count("credit_stalls", &SocketStats::credit_stalls,
             "Times that data waited for buffers of the peer.")
      .Count("credit_updates_sent", &SocketStats::credit_updates_sent,
             "Messages sent only to give the peer credits.")
      .Count("receive_resizes", &SocketStats::receive_resizes,
             "Changes of our receive buffers' size that the peer asked for.")
      .Count("peer_resizes", &SocketStats::peer_resizes,
             "Changes of the peer's receive buffers that we asked for and it granted.")
      .Count("urgent_sent", &SocketStats::urgent_sent, "Urgent bytes sent.")
      .Count("urgent_received", &SocketStats::urgent_received, "Urgent bytes received.")
      .Count("expose_failures", &SocketStats::expose_failures,
             "Times that memory could not be shown to the peer, and was copied.")
      .Count("resumptions", &SocketStats::resumptions, "Moves to a new queue pair, whoever asked.")
      .Count("returns_rejected", &SocketStats::returns_rejected,
             "Who came back during a move and was not the peer.")
      .Count("ended_before_accept", &SocketStats::ended_before_accept,
             "Of a listener: connections that ended before an Accept took them.");
}

void DefineSocketStats(py::module_& module) {
  Counters<SocketStats> counters(module, "SocketStats", "Counters of one socket since it began.");
  CountTransfers(counters);
  CountAdverts(counters);
  CountPath(counters);
}

void DefineQueueStats(py::module_& module) {
  Counters<QueueStats>(module, "QueueStats", "Counters of one queue.")
      .Count("depth", &QueueStats::depth, "Slots that it has.")
      .Count("waiting", &QueueStats::waiting, "Events that were not yet taken.")
      .Count("reserved", &QueueStats::reserved, "Slots promised to outstanding operations.")
      .Count("waiting_max", &QueueStats::waiting_max, "The most events that ever waited.")
      .Count("events", &QueueStats::events, "Events delivered to it.")
      .Count("full", &QueueStats::full, "Posts refused for want of a slot.")
      .Count("starved", &QueueStats::starved,
             "Times that connections had to wait for a slot to be accepted.");
}

void DefineContextStats(py::module_& module) {
  Counters<ContextStats>(module, "ContextStats", "What a Context holds.")
      .Count("regions", &ContextStats::regions, "Registered regions.")
      .Count("region_bytes", &ContextStats::region_bytes, "Bytes in them.")
      .Count("sockets", &ContextStats::sockets, "Sockets.")
      .Count("queues", &ContextStats::queues, "Event queues.")
      .Count("operations", &ContextStats::operations, "Operations outstanding.")
      .Count("operations_posted", &ContextStats::operations_posted,
             "Operations posted since it was opened.")
      .Count("bounce_bytes", &ContextStats::bounce_bytes, "Bytes of copied sends, in use.")
      .Count("file_bytes_cached", &ContextStats::file_bytes_cached,
             "Of send_file: read from the page cache in passing.")
      .Count("file_bytes_read", &ContextStats::file_bytes_read,
             "Of send_file: read by the threads for files.")
      .Count("file_bytes_written", &ContextStats::file_bytes_written, "Of recv_file.")
      .Count("accepts_given_up", &ContextStats::accepts_given_up,
             "Accepted connections that nobody took in time.")
      .Count("ended_before_accept", &ContextStats::ended_before_accept,
             "Incoming connections that ended before an Accept took them.")
      .Count("rejected_backlog", &ContextStats::rejected_backlog,
             "Incoming connections rejected for a full backlog.")
      .Count("rejected_half_open", &ContextStats::rejected_half_open,
             "Incoming connections rejected for half_open_max.")
      .Count("rejected_connections", &ContextStats::rejected_connections,
             "Incoming connections rejected for connections_max.")
      .Count("rejected_address", &ContextStats::rejected_address,
             "Incoming connections rejected for connections_per_address_max.")
      .Count("rejected_rate", &ContextStats::rejected_rate,
             "Incoming connections rejected for accept_rate.");
}

void DefineStreamStats(py::module_& module) {
  Counters<StreamStats>(module, "StreamStats", "Counters of one Stream since it began.")
      .Show("socket", &StreamStats::socket, "Those of its socket.")
      .Count("registrations", &StreamStats::registrations,
             "Registrations of memory of calls, made and undone.")
      .Count("registered_bytes", &StreamStats::registered_bytes, "Bytes in registrations, in all.")
      .Count("registered_now", &StreamStats::registered_now, "Bytes; 0 outside of calls.")
      .Count("patience_ran_out", &StreamStats::patience_ran_out, "Writes that went on by copying.")
      .Count("register_failures", &StreamStats::register_failures,
             "Calls that copied because memory could not be registered.")
      .Count("read_ahead_bytes", &StreamStats::read_ahead_bytes,
             "Bytes that went by way of private memory, of what the peer had shown.")
      .Count("send_buffer_waits", &StreamStats::send_buffer_waits,
             "Times that a write waited for room in the send buffer.");
}

void DefineDiagnostics(py::module_& module) {
  py::class_<FabricReport>(module, "FabricReport", "One fabric that this build knows.")
      .def_readonly("name", &FabricReport::name, "Its name in Context(fabric=...).")
      .def_readonly("available", &FabricReport::available, "Whether a Context can be opened on it.")
      .def_readonly("text", &FabricReport::text, "What it is, or why it is not there.");
  py::class_<LimitReport>(module, "LimitReport", "One limit of the Context that would be opened.")
      .def_readonly("name", &LimitReport::name, "The option's.")
      .def_readonly("value", &LimitReport::value, "Its value.")
      .def_readonly("text", &LimitReport::text, "What it bounds.");
  py::class_<DiagnosticsReport>(module, "DiagnosticsReport",
                                "What Context(...) would find; str() has it as text.")
      .def_readonly("fabrics", &DiagnosticsReport::fabrics, "A FabricReport of each.")
      .def_readonly("chosen", &DiagnosticsReport::chosen,
                    "The fabric that would be opened; empty if none.")
      .def_readonly("reason", &DiagnosticsReport::reason, "Why that one, or why none.")
      .def_readonly("memlock_soft", &DiagnosticsReport::memlock_soft,
                    "Memory that may be locked, in bytes; 2**64 - 1: no limit.")
      .def_readonly("memlock_hard", &DiagnosticsReport::memlock_hard,
                    "What memlock_soft may be raised to.")
      .def_readonly("limits", &DiagnosticsReport::limits, "A LimitReport of each limit.")
      .def("__str__", &DiagnosticsReport::ToString);
}

}  // namespace

void DefineStats(py::module_& module) {
  DefineSocketStats(module);
  DefineQueueStats(module);
  DefineContextStats(module);
  DefineStreamStats(module);
  DefineDiagnostics(module);
}

}  // namespace esdp::python
