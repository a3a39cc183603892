#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/file_arguments.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/region_object.h"
#include "bindings/python/core/socket_object.h"
#include "bindings/python/core/stats_type.h"

// Socket as Python sees it.

namespace py = pybind11;

namespace esdp::python {
namespace {

using py::arg;
using Seconds = std::optional<double>;

std::string DescribeSocket(const SocketObject& self) {
  std::string text = std::string("<esdp.Socket ") + ToString(self.handle().transport());
  text += " " + self.handle().local().ToString();
  if (self.handle().peer().port() != 0) text += " to " + self.handle().peer().ToString();
  return text + (self.closed() ? ", closed>" : ">");
}

PostArguments Arguments(const py::object& cookie, const Seconds& timeout) {
  PostArguments arguments;
  arguments.cookie = cookie;
  arguments.timeout = timeout;
  return arguments;
}

PostArguments SendArguments(const py::object& cookie, const Seconds& timeout,
                            std::string_view complete_at, std::string_view path) {
  PostArguments arguments = Arguments(cookie, timeout);
  arguments.complete_at = CompleteAtFrom(complete_at);
  arguments.path = PathFrom(path);
  return arguments;
}

py::object SendFile(SocketObject& self, const py::sequence& ranges, QueueObject& queue,
                    const py::object& cookie, const py::sequence& header,
                    const py::sequence& trailer, std::string_view strategy,
                    std::string_view on_short, bool drop_behind, const Seconds& timeout,
                    std::string_view complete_at, std::string_view path) {
  SendFileArguments file(ranges, header, trailer);
  file.strategy = FileStrategyFrom(strategy);
  file.on_short = OnShortFileFrom(on_short);
  file.drop_behind = drop_behind;
  return self.SendFile(file, queue, SendArguments(cookie, timeout, complete_at, path));
}

py::object ReceiveFile(SocketObject& self, const py::object& target, QueueObject& queue,
                       const py::object& cookie, std::string_view sync, uint64_t sync_every,
                       bool reserve, std::string_view on_short, bool sparse, bool drop_behind,
                       const Seconds& timeout, std::string_view path) {
  ReceiveFileArguments file(target);
  file.sink.sync = SyncPolicyFrom(sync);
  file.sink.sync_every = sync_every;
  file.sink.reserve = reserve;
  file.sink.on_short = OnShortFileFrom(on_short);
  file.sink.sparse = sparse;
  file.sink.drop_behind = drop_behind;
  return self.ReceiveFile(file, queue, SendArguments(cookie, timeout, "reusable", path));
}

using SocketClass = py::class_<SocketObject, std::shared_ptr<SocketObject>>;

void DefineTransfers(SocketClass& type) {
  type.def(
          "send",
          [](SocketObject& self, const py::object& data, QueueObject& queue,
             const py::object& cookie, bool urgent, const Seconds& timeout,
             std::string_view complete_at, std::string_view path) {
            return self.Send(data, urgent, queue,
                             SendArguments(cookie, timeout, complete_at, path));
          },
          arg("data"), arg("queue"), arg("cookie") = py::none(), py::kw_only(),
          arg("urgent") = false, arg("timeout") = py::none(), arg("complete_at") = "reusable",
          arg("path") = "threshold",
          "Sends a Region or a Slice from where it lies; it is lent until the event. Any other "
          "object with a buffer is copied before this returns (WindowFullError: no room now).")
      .def(
          "recv",
          [](SocketObject& self, const py::object& target, QueueObject& queue,
             const py::object& cookie, bool wait_all, const Seconds& timeout,
             std::string_view path) {
            return self.Receive(target, wait_all, queue,
                                SendArguments(cookie, timeout, "reusable", path));
          },
          arg("target"), arg("queue"), arg("cookie") = py::none(), py::kw_only(),
          arg("wait_all") = false, arg("timeout") = py::none(), arg("path") = "threshold",
          "Receives 1 byte or more, or with wait_all until it is full, into a Region, a Slice or "
          "another writable buffer, which is lent until the event. The end of the stream is an "
          "event with eof.")
      .def(
          "sendv",
          [](SocketObject& self, const py::sequence& data, QueueObject& queue,
             const py::object& cookie, bool urgent, const Seconds& timeout,
             std::string_view complete_at, std::string_view path) {
            return self.SendV(data, urgent, queue,
                              SendArguments(cookie, timeout, complete_at, path));
          },
          arg("data"), arg("queue"), arg("cookie") = py::none(), py::kw_only(),
          arg("urgent") = false, arg("timeout") = py::none(), arg("complete_at") = "reusable",
          arg("path") = "threshold", "Sends regions and slices, one after the other.")
      .def(
          "recvv",
          [](SocketObject& self, const py::sequence& targets, QueueObject& queue,
             const py::object& cookie, bool wait_all, const Seconds& timeout,
             std::string_view path) {
            return self.ReceiveV(targets, wait_all, queue,
                                 SendArguments(cookie, timeout, "reusable", path));
          },
          arg("targets"), arg("queue"), arg("cookie") = py::none(), py::kw_only(),
          arg("wait_all") = false, arg("timeout") = py::none(), arg("path") = "threshold",
          "Receives into regions and slices, one after the other.");
}

void DefineFiles(SocketClass& type) {
  const py::tuple nothing;
  type.def(
          "send_file", &SendFile, arg("ranges"), arg("queue"), arg("cookie") = py::none(),
          py::kw_only(), arg("header") = nothing, arg("trailer") = nothing,
          arg("strategy") = "pipelined", arg("on_short") = "abort", arg("drop_behind") = false,
          arg("timeout") = py::none(), arg("complete_at") = "reusable", arg("path") = "threshold",
          "Sends parts of files, each a tuple (file, offset, length), between a header and a "
          "trailer of regions and slices, as one send. A file is a descriptor or an object with "
          "fileno(); it stays open until the event. One that is shorter, or fails, aborts the "
          "connection; with on_short='stop' the event tells how far it went. drop_behind: the page "
          "cache forgets what was read, for large files that nobody reads again soon.")
      .def("recv_file", &ReceiveFile, arg("target"), arg("queue"), arg("cookie") = py::none(),
           py::kw_only(), arg("sync") = "none", arg("sync_every") = FileSink().sync_every,
           arg("reserve") = true, arg("on_short") = "abort", arg("sparse") = false,
           arg("drop_behind") = false, arg("timeout") = py::none(), arg("path") = "threshold",
           "Writes the next bytes of the stream to a part of a file, a tuple (file, offset, "
           "length). "
           "sync: 'none', 'end' (they are on the medium with the event) or 'every' (also each time "
           "sync_every bytes were written). reserve: no room for them is told now. sparse: blocks "
           "of zeros become holes, and no room is reserved. drop_behind: the page cache forgets "
           "what is on the medium; not with sync='none'.");
}

void DefineConnection(SocketClass& type) {
  type.def("bind", &SocketObject::Bind, arg("address"),
           "Sets the local address: 'host:port' or (host, port), numeric.")
      .def("listen", &SocketObject::Listen, arg("backlog") = 128,
           "Lets peers connect; `backlog` of them may wait for an accept.")
      .def(
          "connect",
          [](SocketObject& self, const py::object& address, QueueObject& queue,
             const py::object& cookie, const Seconds& timeout) {
            return self.Connect(address, queue, Arguments(cookie, timeout));
          },
          arg("address"), arg("queue"), arg("cookie") = py::none(), py::kw_only(),
          arg("timeout") = py::none(), "Its event tells refusals too; 30 s unless told otherwise.")
      .def(
          "accept",
          [](SocketObject& self, QueueObject& queue, int count, const py::object& cookie,
             const Seconds& timeout) {
            return self.Accept(count, queue, Arguments(cookie, timeout));
          },
          arg("queue"), arg("count") = 1, arg("cookie") = py::none(), py::kw_only(),
          arg("timeout") = py::none(),
          "An event for each of `count` connections (0: until it is cancelled), for "
          "Context.take_accepted.")
      .def(
          "await_urgent",
          [](SocketObject& self, QueueObject& queue, const py::object& cookie,
             const Seconds& timeout) {
            return self.AwaitUrgent(queue, Arguments(cookie, timeout));
          },
          arg("queue"), arg("cookie") = py::none(), py::kw_only(), arg("timeout") = py::none(),
          "Its event comes when the peer announces an urgent byte.")
      .def(
          "suspend",
          [](SocketObject& self, QueueObject& queue, const py::object& cookie,
             const Seconds& timeout) { return self.Suspend(queue, Arguments(cookie, timeout)); },
          arg("queue"), arg("cookie") = py::none(), py::kw_only(), arg("timeout") = py::none(),
          "Moves the connection to a new queue pair; streams and operations outlive it. Its event "
          "comes when data flows again.")
      .def(
          "shutdown",
          [](SocketObject& self, QueueObject& queue, const py::object& cookie,
             const Seconds& timeout) { return self.Shutdown(queue, Arguments(cookie, timeout)); },
          arg("queue"), arg("cookie") = py::none(), py::kw_only(), arg("timeout") = py::none(),
          "Ends the sending direction, after all that was posted.");
}

py::object CloseSocket(SocketObject& self, QueueObject* queue, std::string_view mode,
                       const py::object& cookie, const Seconds& timeout) {
  if (queue != nullptr) {
    return self.Close(CloseModeFrom(mode), *queue, Arguments(cookie, timeout));
  }
  self.CloseAlone(CloseModeFrom(mode));
  return py::none();
}

void DefineEnd(SocketClass& type) {
  type.def("close", &CloseSocket, arg("queue") = static_cast<QueueObject*>(nullptr),
           arg("mode") = "graceful", arg("cookie") = py::none(), py::kw_only(),
           arg("timeout") = py::none(),
           "With a queue: the last event of the socket comes there. Without: it goes on by itself. "
           "'graceful' lets sends drain, 'abort' does not.")
      .def(
          "cancel",
          [](SocketObject& self, std::string_view direction) {
            return self.CancelAll(DirectionFrom(direction));
          },
          arg("direction") = "both",
          "Asks every operation of 'send', 'receive' or 'both' to end; returns how many. One "
          "alone: OpId.cancel.")
      .def("__enter__", [](const std::shared_ptr<SocketObject>& self) { return self; })
      .def("__exit__",
           [](SocketObject& self, const py::object& type, const py::object&, const py::object&) {
             self.CloseAlone(type.is_none() ? CloseMode::kGraceful : CloseMode::kAbort);
           });
}

}  // namespace

void DefineSocket(py::module_& module) {
  SocketClass type(
      module, "Socket",
      "One end of a stream, or a listener, from Context.socket or Context.take_accepted. "
      "Nothing blocks: each post gives an OpId at once, and an event in its queue later.");
  DefineTransfers(type);
  DefineFiles(type);
  DefineConnection(type);
  DefineEnd(type);
  type.def("set_option", &SocketObject::SetOption, arg("name"), arg("value"),
           "An option by its name in Context.socket.")
      .def("get_option", &SocketObject::GetOption, arg("name"),
           "The value in force, not the one asked for.")
      .def(
          "stats", [](const SocketObject& self) { return self.handle().Stats(); },
          "Its counters now.")
      .def_property_readonly(
          "transport", [](const SocketObject& self) { return ToString(self.handle().transport()); },
          "'qpip', 'sim', 'verbs', 'local'; 'none' before connect or listen.")
      .def_property_readonly(
          "local", [](const SocketObject& self) { return TupleOf(self.handle().local()); },
          "Its own address, as (host, port).")
      .def_property_readonly(
          "peer", [](const SocketObject& self) { return TupleOf(self.handle().peer()); },
          "The peer's address, as (host, port).")
      .def_property_readonly("closed", &SocketObject::closed, "Whether it has been closed.")
      .def("__repr__", &DescribeSocket);
}

}  // namespace esdp::python
