#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/options.h"
#include "bindings/python/core/stream_object.h"

// Stream and StreamListener as Python sees them.

namespace py = pybind11;

namespace esdp::python {
namespace {

using py::arg;
using Class = py::class_<StreamObject, std::shared_ptr<StreamObject>>;
using Opener = std::shared_ptr<ContextObject>;

// What a connection has to drain in, in seconds.
constexpr double kGrace = 10;

WriteArgs ArgumentsOf(bool wait, bool urgent, std::string_view path) {
  WriteArgs args;
  args.wait = wait;
  args.urgent = urgent;
  args.path = PathFrom(path);
  return args;
}

ReadArgs ArgumentsOf(size_t min, bool peek, bool wait) {
  ReadArgs args;
  args.min = min;
  args.peek = peek;
  args.wait = wait;
  return args;
}

std::string Describe(const StreamObject& self) {
  Socket& socket = const_cast<Stream&>(self.handle()).socket();
  return std::string("<esdp.Stream ") + ToString(socket.transport()) + " " +
         socket.local().ToString() + " to " + socket.peer().ToString() +
         (self.closed() ? ", closed>" : ">");
}

void DefineOpening(Class& type) {
  type.def_static(
          "connect",
          [](const Opener& context, const py::object& address, const py::object& local,
             const Seconds& timeout, const py::kwargs& options) {
            return StreamObject::Connect(context, address, local, timeout, options);
          },
          arg("context").none(false), arg("address"), py::kw_only(), arg("local") = py::none(),
          arg("timeout") = py::none(),
          "A stream to whoever listens there, from the address `local` where one is told; it waits "
          "30 s unless told otherwise. The options are those of StreamOptions, as keywords.")
      .def_static(
          "over",
          [](const Opener& context, const py::object& sock, bool accepts, const Seconds& timeout,
             const py::kwargs& options) {
            return StreamObject::Over(context, sock, accepts, timeout, options);
          },
          arg("context").none(false), arg("sock"), py::kw_only(), arg("accepts") = false,
          arg("timeout") = py::none(),
          "A stream over a TCP socket of the system that is connected already, on qpip; with "
          "`accepts` the peer is the side that connects. The socket, or its descriptor, is "
          "duplicated, and may be closed; nothing else may read or write it any more.")
      .def_static(
          "of",
          [](SocketObject& socket, const py::kwargs& options) {
            return StreamObject::Of(socket, options);
          },
          arg("socket"),
          "Of a connected Socket, which is the stream's from here on, also where this fails.");
}

void DefineReading(Class& type) {
  type.def(
          "read_into",
          [](StreamObject& self, const py::object& buffer, size_t min, bool peek, bool wait,
             const Seconds& timeout) {
            return self.ReadInto(buffer, ArgumentsOf(min, peek, wait), timeout);
          },
          arg("buffer"), arg("min") = 1, py::kw_only(), arg("peek") = false, arg("wait") = true,
          arg("timeout") = py::none(),
          "Reads `min` bytes or more into a writable buffer, which is held meanwhile, and gives "
          "their number: fewer at the end of the stream or of the time, 0 where nothing comes any "
          "more. TimeoutError, and with wait=False BlockingIOError, only where there were none. "
          "With `peek` they stay to be read, of up to 256 KiB.")
      .def(
          "read",
          [](StreamObject& self, size_t n, size_t min, bool peek, bool wait,
             const Seconds& timeout) {
            return self.Read(n, ArgumentsOf(min, peek, wait), timeout);
          },
          arg("n"), arg("min") = 1, py::kw_only(), arg("peek") = false, arg("wait") = true,
          arg("timeout") = py::none(),
          "The same as bytes, `n` of them at most: b'' at the end of the stream.");
}

void DefineWriting(Class& type) {
  type.def(
          "write",
          [](StreamObject& self, const py::object& data, bool wait, bool urgent,
             std::string_view path, const Seconds& timeout) {
            return self.Write(data, ArgumentsOf(wait, urgent, path), timeout);
          },
          arg("data"), py::kw_only(), arg("wait") = true, arg("urgent") = false,
          arg("path") = "threshold", arg("timeout") = py::none(),
          "Writes a buffer, which is held meanwhile, or a Region or Slice, and gives how many "
          "bytes were taken: all, unless the time was over or it was not to wait. TimeoutError, "
          "and with wait=False BlockingIOError, only where there were none. They may still be in "
          "the send buffer then. With `urgent` the last byte is announced to the peer.")
      .def(
          "writev",
          [](StreamObject& self, const py::sequence& pieces, bool wait, bool urgent,
             std::string_view path, const Seconds& timeout) {
            return self.WriteV(pieces, ArgumentsOf(wait, urgent, path), timeout);
          },
          arg("pieces"), py::kw_only(), arg("wait") = true, arg("urgent") = false,
          arg("path") = "threshold", arg("timeout") = py::none(),
          "Writes several buffers, one after the other, as write does one.")
      .def("shutdown_write", &StreamObject::ShutdownWrite,
           "Nothing is written any more; the peer reads what was, and then the end.");
}

void DefineEnd(Class& type) {
  type.def(
          "close",
          [](StreamObject& self, double timeout, bool wait) {
            wait ? self.Close(timeout) : self.CloseLater();
          },
          arg("timeout") = kGrace, py::kw_only(), arg("wait") = true,
          "Ends both directions, once the peer has all that was written and has shut down too; "
          "after `timeout` seconds it is aborted (TimeoutError). Threads that wait inside come "
          "back with an error. With wait=False it goes on by itself, for the socket's linger at "
          "most. Nothing when it was closed before.")
      .def("abort", &StreamObject::Abort, "Ends it at once; the peer learns that it was aborted.")
      .def("__enter__", [](const std::shared_ptr<StreamObject>& self) { return self; })
      .def("__exit__",
           [](StreamObject& self, const py::object& type, const py::object&, const py::object&) {
             type.is_none() ? self.CloseLater() : self.Abort();
           });
}

void DefineOptions(Class& type) {
  type.def(
          "set_options",
          [](StreamObject& self, const py::kwargs& options) { self.SetOptions(options); },
          "Changes those of its options that are given; the others stay.")
      .def_property_readonly(
          "options",
          [](const StreamObject& self) { return StreamOptionsAsDict(self.handle().options()); },
          "zcopy_min, chunk_bytes, chunks_max (None: by the fabric), send_buffer_bytes, patience.")
      .def(
          "set_option",
          [](StreamObject& self, const std::string& name, const py::object& value) {
            Check(self.handle().socket().SetOption(OptionFrom(name, value)));
          },
          arg("name"), arg("value"), "An option of its socket, by its name in Context.socket.")
      .def(
          "get_option",
          [](StreamObject& self, const std::string& name) {
            return ValueOf(Value(self.handle().socket().GetOption(OptionNameFrom(name))));
          },
          arg("name"), "The value in force of an option of its socket.");
}

void DefineState(Class& type) {
  type.def(
          "stats", [](const StreamObject& self) { return self.handle().Stats(); },
          "Its counters now.")
      .def_property_readonly(
          "readiness", [](const StreamObject& self) { return self.handle().readiness(); },
          "What could be done now without a wait: a StreamReadiness.")
      .def(
          "fileno", [](StreamObject& self) { return Value(self.handle().fd()); },
          "A descriptor for select, poll and epoll that shows the readiness as a socket of TCP "
          "does, for nothing but waiting: calls with wait=False do the rest.")
      .def_property_readonly(
          "transport",
          [](StreamObject& self) { return ToString(self.handle().socket().transport()); },
          "'qpip', 'sim', 'verbs' or 'local'.")
      .def_property_readonly(
          "local", [](StreamObject& self) { return TupleOf(self.handle().socket().local()); },
          "Its own address, as (host, port).")
      .def_property_readonly(
          "peer", [](StreamObject& self) { return TupleOf(self.handle().socket().peer()); },
          "The peer's address, as (host, port).")
      .def_property_readonly("closed", &StreamObject::closed, "Whether it has been closed.")
      .def("__repr__", &Describe);
}

void DefineReadiness(py::module_& module) {
  py::class_<StreamReadiness>(module, "StreamReadiness",
                              "What a Stream could do without a wait, at one moment.")
      .def_readonly("readable", &StreamReadiness::readable, "Bytes are here, or the end.")
      .def_readonly("writable", &StreamReadiness::writable, "Bytes would be taken.")
      .def_readonly("urgent", &StreamReadiness::urgent, "The peer has announced an urgent byte.")
      .def_readonly("peer_ended", &StreamReadiness::peer_ended,
                    "Nothing comes behind what is readable.")
      .def_readonly("failed", &StreamReadiness::failed,
                    "The connection has ended otherwise than in order.")
      .def_readonly("bytes", &StreamReadiness::bytes, "How many wait to be read.");
}

void DefineListener(py::module_& module) {
  using Self = std::shared_ptr<StreamListenerObject>;
  py::class_<StreamListenerObject, Self>(
      module, "StreamListener",
      "Takes connections as streams, from StreamListener.listen. Several threads may accept.")
      .def_static("listen", &StreamListenerObject::Listen, arg("context").none(false),
                  arg("address"), arg("backlog") = 128,
                  "Lets peers connect to an address; `backlog` of them may wait for an accept.")
      .def(
          "accept",
          [](StreamListenerObject& self, const Seconds& timeout, const py::kwargs& options) {
            return self.Accept(timeout, options);
          },
          py::kw_only(), arg("timeout") = py::none(),
          "The next connection as a Stream, with the options of StreamOptions as keywords.")
      .def("close", &StreamListenerObject::Close,
           "Takes no more connections. Threads that wait inside come back with an error.")
      .def_property_readonly(
          "local", [](const StreamListenerObject& self) { return TupleOf(self.local()); },
          "Where it listens, as (host, port).")
      .def_property_readonly("closed", &StreamListenerObject::closed, "Whether it was closed.")
      .def("__enter__", [](const Self& self) { return self; })
      .def("__exit__", [](StreamListenerObject& self, const py::object&, const py::object&,
                          const py::object&) { self.Close(); })
      .def("__repr__", [](const StreamListenerObject& self) {
        return "<esdp.StreamListener " + self.local().ToString() +
               (self.closed() ? ", closed>" : ">");
      });
}

}  // namespace

void DefineStream(py::module_& module) {
  DefineReadiness(module);
  Class type(module, "Stream",
             "One end of a connection whose calls block, as those of a socket of the system do, "
             "from Stream.connect, Stream.of or StreamListener.accept. It takes memory that nobody "
             "registered. One reader and one writer go on in parallel; other threads run while a "
             "call waits. A `with` leaves the close to go on by itself.");
  DefineOpening(type);
  DefineReading(type);
  DefineWriting(type);
  DefineEnd(type);
  DefineOptions(type);
  DefineState(type);
  DefineListener(module);
}

}  // namespace esdp::python
