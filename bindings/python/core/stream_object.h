#ifndef ESDP_BINDINGS_PYTHON_CORE_STREAM_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_STREAM_OBJECT_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bindings/python/core/socket_object.h"
#include "esdp/stream.h"

namespace esdp::python {

class ContextObject;

// What a call that waits takes, as Python gives it.
using Seconds = std::optional<double>;

// esdp.Stream: one end of a connection, for callers that block and register nothing.
//
// A call that waits does so in tries, between which handlers of signals run; what has moved in one
// is not asked for again in the next. The memory of a call is held by a memoryview until it ends.
//
//   Owns:     the stream, which also each call holds that runs. One that goes without a close is
//             aborted, with a ResourceWarning.
//   Threads:  with the interpreter lock held.
//   Blocks:   Connect, Read, Write and Close, without the lock.
//   Units:    bytes; seconds.
//   Errors:   exceptions. Those of handlers of signals end a call, and Connect and Close their
//             connection.
class StreamObject {
 public:
  static std::shared_ptr<StreamObject> Connect(const std::shared_ptr<ContextObject>& context,
                                               pybind11::handle address, pybind11::handle local,
                                               const Seconds& timeout,
                                               const pybind11::dict& options);
  // Of whatever has a descriptor, a connected socket of the system.
  static std::shared_ptr<StreamObject> Over(const std::shared_ptr<ContextObject>& context,
                                            pybind11::handle descriptor, bool accepts,
                                            const Seconds& timeout, const pybind11::dict& options);
  // The socket is the stream's from here on, also where this fails.
  static std::shared_ptr<StreamObject> Of(SocketObject& socket, const pybind11::dict& options);
  StreamObject(std::shared_ptr<ContextObject> context, Stream stream);
  ~StreamObject();
  StreamObject(const StreamObject&) = delete;
  StreamObject& operator=(const StreamObject&) = delete;

  // Of `args` the deadline is not looked at.
  size_t ReadInto(pybind11::handle target, ReadArgs args, const Seconds& timeout);
  pybind11::bytes Read(size_t most, ReadArgs args, const Seconds& timeout);
  size_t Write(pybind11::handle data, WriteArgs args, const Seconds& timeout);
  size_t WriteV(const pybind11::sequence& pieces, WriteArgs args, const Seconds& timeout);

  void ShutdownWrite();
  // Nothing where it was closed before.
  void Close(double timeout);
  // Goes on by itself, for the linger of its socket at most.
  void CloseLater();
  void Abort();
  bool closed() const { return closed_; }

  void SetOptions(const pybind11::dict& options);
  Stream& handle() { return *stream_; }
  const Stream& handle() const { return *stream_; }

 private:
  size_t Fill(absl::Span<std::byte> room, ReadArgs args, const Seconds& timeout);
  template <typename Call>
  size_t WriteAll(size_t bytes, WriteArgs& args, const Seconds& timeout, const Call& call);

  const std::shared_ptr<ContextObject> context_;
  std::shared_ptr<Stream> stream_;
  bool closed_ = false;
};

// esdp.StreamListener.
//
//   Owns:     the listener. One that goes without a close is closed, with a ResourceWarning.
//   Threads:  with the interpreter lock held.
//   Blocks:   Accept, without the lock.
//   Units:    seconds.
//   Errors:   exceptions.
class StreamListenerObject {
 public:
  static std::shared_ptr<StreamListenerObject> Listen(const std::shared_ptr<ContextObject>& context,
                                                      pybind11::handle address, int backlog);
  StreamListenerObject(std::shared_ptr<ContextObject> context, StreamListener listener);
  ~StreamListenerObject();
  StreamListenerObject(const StreamListenerObject&) = delete;
  StreamListenerObject& operator=(const StreamListenerObject&) = delete;

  std::shared_ptr<StreamObject> Accept(const Seconds& timeout, const pybind11::dict& options);
  Address local() const { return listener_.local(); }
  void Close();
  bool closed() const { return closed_; }

 private:
  const std::shared_ptr<ContextObject> context_;
  StreamListener listener_;
  bool closed_ = false;
};

void DefineStream(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_STREAM_OBJECT_H_
