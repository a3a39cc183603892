#include "bindings/python/core/stream_object.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/options.h"
#include "bindings/python/core/patience.h"
#include "bindings/python/core/region_object.h"
#include "bindings/python/core/unlocked.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

// What a peek shows at most (esdp/stream.h).
constexpr size_t kPeekMost = 256 * 1024;

// The one event of a queue; its operation has a deadline of its own.
absl::Status AwaitOne(ContextObject& context, EventQueue& queue, Event& event) {
  Patience patience(context, std::nullopt);
  for (;;) {
    const absl::Time until = patience.NextDeadline();
    absl::StatusOr<size_t> taken = size_t{0};
    {
      const Unlocked unlocked;
      taken = queue.Dequeue(absl::MakeSpan(&event, 1), {.deadline = until});
    }
    HandleSignals();
    if (taken.ok()) return event.status();
    if (!patience.GoesOn(taken.status())) return taken.status();
  }
}

HeldMemory WritableMemory(py::handle target) {
  HeldMemory memory = HeldMemory::Of(target);
  if (!memory.writable) RaiseTypeError("this memory is read-only: read into writable memory");
  return memory;
}

absl::Span<const std::byte> Rest(const HeldMemory& memory, size_t moved) {
  return {memory.base + moved, memory.length - moved};
}

// The pieces without the first `moved` bytes.
std::vector<absl::Span<const std::byte>> Rest(const std::vector<HeldMemory>& pieces, size_t moved) {
  std::vector<absl::Span<const std::byte>> rest;
  for (const HeldMemory& piece : pieces) {
    const size_t skipped = std::min(moved, piece.length);
    moved -= skipped;
    if (skipped < piece.length || piece.length == 0) rest.push_back(Rest(piece, skipped));
  }
  return rest;
}

RegionObject& RegionOf(const Named& named) {
  return py::isinstance<SliceObject>(named.keep) ? *named.keep.cast<SliceObject&>().region
                                                 : named.keep.cast<RegionObject&>();
}

}  // namespace

// --- connecting ----------------------------------------------------------------------------------

namespace {

// The event of what `post` begins, the one operation of the queue. Where it fails, or a handler of a
// signal does, the attempt ends with the socket.
template <typename Post>
Event Begun(ContextObject& context, EventQueue& queue, Socket& socket, const Seconds& timeout,
            const Post& post) {
  OpArgs args{queue};
  if (timeout.has_value()) args.deadline = DeadlineAfter(context.handle().Now(), timeout);
  (void)Value(post(args));
  Event event;
  try {
    Check(AwaitOne(context, queue, event));
  } catch (...) {
    const Unlocked unlocked;
    socket = Socket();
    queue = EventQueue();  // it has nothing to wait for
    throw;
  }
  return event;
}

}  // namespace

std::shared_ptr<StreamObject> StreamObject::Connect(const std::shared_ptr<ContextObject>& context,
                                                    py::handle address, py::handle local,
                                                    const Seconds& timeout,
                                                    const py::dict& options) {
  const StreamOptions legal = StreamOptionsFrom(options, {});
  const Address peer = AddressFrom(address);
  EventQueue queue = Value(context->handle().CreateQueue({.depth = 1}));
  Socket socket = Value(context->handle().CreateSocket(peer.family()));
  if (!local.is_none()) Check(socket.Bind(AddressFrom(local)));
  Begun(*context, queue, socket, timeout,
        [&](const OpArgs& args) { return socket.Connect(peer, args); });
  Stream stream = Value(Stream::Of(context->handle(), std::move(socket), legal));
  return std::make_shared<StreamObject>(context, std::move(stream));
}

std::shared_ptr<StreamObject> StreamObject::Over(const std::shared_ptr<ContextObject>& context,
                                                 py::handle descriptor, bool accepts,
                                                 const Seconds& timeout, const py::dict& options) {
  const StreamOptions legal = StreamOptionsFrom(options, {});
  const int number = PyObject_AsFileDescriptor(descriptor.ptr());
  if (number < 0) throw py::error_already_set();
  EventQueue queue = Value(context->handle().CreateQueue({.depth = 1}));
  Socket socket = Value(context->handle().CreateSocket(Family::kIpv4));
  if (accepts) {
    Check(socket.ListenOver(number));
    const Event event = Begun(*context, queue, socket, timeout,
                              [&](const OpArgs& args) { return socket.Accept(1, args); });
    socket = Value(context->handle().TakeAccepted(event.accepted));
  } else {
    Begun(*context, queue, socket, timeout,
          [&](const OpArgs& args) { return socket.ConnectOver(number, args); });
  }
  Stream stream = Value(Stream::Of(context->handle(), std::move(socket), legal));
  return std::make_shared<StreamObject>(context, std::move(stream));
}

std::shared_ptr<StreamObject> StreamObject::Of(SocketObject& socket, const py::dict& options) {
  const StreamOptions legal = StreamOptionsFrom(options, {});
  const std::shared_ptr<ContextObject>& context = socket.context();
  Stream stream = Value(Stream::Of(context->handle(), socket.Take(), legal));
  return std::make_shared<StreamObject>(context, std::move(stream));
}

StreamObject::StreamObject(std::shared_ptr<ContextObject> context, Stream stream)
    : context_(std::move(context)), stream_(std::make_shared<Stream>(std::move(stream))) {}

StreamObject::~StreamObject() {
  if (!closed_ && !context_->closed()) WarnUnclosed("Stream");
  Quietly([this] {
    const Unlocked unlocked;
    stream_.reset();
  });
}

// --- reading -------------------------------------------------------------------------------------

size_t StreamObject::Fill(absl::Span<std::byte> room, ReadArgs args, const Seconds& timeout) {
  const size_t min = args.peek ? std::min(args.min, kPeekMost) : args.min;
  Patience patience(*context_, timeout);
  size_t moved = 0;
  for (;;) {
    args.min = args.peek ? min : min - moved;
    args.deadline = patience.NextDeadline();
    absl::StatusOr<size_t> some = size_t{0};
    {
      const Unlocked unlocked;
      some = stream_->Read(room.subspan(args.peek ? 0 : moved), args);
    }
    HandleSignals();
    if (!some.ok()) {
      if (patience.GoesOn(some.status())) continue;
      if (moved == 0) Raise(some.status());
      return moved;  // the next call tells
    }
    moved = args.peek ? *some : moved + *some;
    if (*some == 0 || moved >= min || !args.wait || patience.over()) return moved;
    // The rest of what is peeked at may never come.
    const StreamReadiness now = stream_->readiness();
    if (args.peek && (now.peer_ended || now.failed || closed_)) return moved;
  }
}

size_t StreamObject::ReadInto(py::handle target, ReadArgs args, const Seconds& timeout) {
  const HeldMemory memory = WritableMemory(target);
  return Fill(memory.span(), args, timeout);
}

py::bytes StreamObject::Read(size_t most, ReadArgs args, const Seconds& timeout) {
  if (most > static_cast<size_t>(PY_SSIZE_T_MAX)) RaiseValueError("so many bytes do not exist");
  // Nobody has seen it yet, so that it may still change.
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(most));
  if (bytes == nullptr) throw py::error_already_set();
  try {
    auto* const base = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes));
    const size_t moved = Fill({base, most}, args, timeout);
    if (moved < most && _PyBytes_Resize(&bytes, static_cast<Py_ssize_t>(moved)) != 0) {
      throw py::error_already_set();
    }
  } catch (...) {
    Py_XDECREF(bytes);
    throw;
  }
  return py::reinterpret_steal<py::bytes>(bytes);
}

// --- writing -------------------------------------------------------------------------------------

// `call` writes what is left of `bytes` behind those that have moved.
template <typename Call>
size_t StreamObject::WriteAll(size_t bytes, WriteArgs& args, const Seconds& timeout,
                              const Call& call) {
  Patience patience(*context_, timeout);
  size_t moved = 0;
  do {
    args.deadline = patience.NextDeadline();
    absl::StatusOr<size_t> some = size_t{0};
    {
      const Unlocked unlocked;
      some = call(moved);
    }
    HandleSignals();
    if (some.ok()) {
      moved += *some;
    } else if (!patience.GoesOn(some.status())) {
      if (moved == 0) Raise(some.status());
      return moved;  // the next call tells
    }
  } while (moved < bytes && args.wait && !patience.over());
  return moved;
}

size_t StreamObject::Write(py::handle data, WriteArgs args, const Seconds& timeout) {
  const Named named = Named::ToSend(data);
  if (!named.registered) {
    return WriteAll(named.memory.length, args, timeout,
                    [&](size_t moved) { return stream_->Write(Rest(named.memory, moved), args); });
  }
  const Slice& all = named.slice;
  Region& region = RegionOf(named).handle();
  return WriteAll(all.length(), args, timeout, [&](size_t moved) -> absl::StatusOr<size_t> {
    if (moved == 0) return stream_->Write(all, args);
    const absl::StatusOr<Slice> rest = region.slice(all.offset() + moved, all.length() - moved);
    if (!rest.ok()) return rest.status();
    return stream_->Write(*rest, args);
  });
}

size_t StreamObject::WriteV(const py::sequence& pieces, WriteArgs args, const Seconds& timeout) {
  std::vector<HeldMemory> held;
  size_t bytes = 0;
  for (const py::handle piece : pieces) {
    held.push_back(HeldMemory::Of(piece));
    bytes += held.back().length;
  }
  return WriteAll(bytes, args, timeout,
                  [&](size_t moved) { return stream_->WriteV(Rest(held, moved), args); });
}

// --- the end -------------------------------------------------------------------------------------

void StreamObject::ShutdownWrite() {
  absl::Status done;
  {
    const Unlocked unlocked;  // a write of another thread has its turn first
    done = stream_->ShutdownWrite();
  }
  Check(done);
}

// As Stream::Close, and handlers of signals run meanwhile.
void StreamObject::Close(double timeout) {
  if (std::exchange(closed_, true) || context_->closed()) return;
  EventQueue queue = Value(context_->handle().CreateQueue({.depth = 1}));
  const absl::Time deadline = DeadlineAfter(context_->handle().Now(), timeout);
  (void)Value(stream_->socket().Close(CloseMode::kGraceful, {queue, 0, deadline}));
  Event event;
  try {
    Check(AwaitOne(*context_, queue, event));
  } catch (...) {
    const Unlocked unlocked;
    stream_->Abort();  // where it has ended this does nothing
    queue = EventQueue();
    throw;
  }
}

void StreamObject::CloseLater() {
  if (std::exchange(closed_, true) || context_->closed()) return;
  context_->CloseLater(stream_);
}

void StreamObject::Abort() {
  closed_ = true;
  if (!context_->closed()) stream_->Abort();
}

void StreamObject::SetOptions(const py::dict& options) {
  Check(stream_->SetOptions(StreamOptionsFrom(options, stream_->options())));
}

// --- listening -----------------------------------------------------------------------------------

std::shared_ptr<StreamListenerObject> StreamListenerObject::Listen(
    const std::shared_ptr<ContextObject>& context, py::handle address, int backlog) {
  StreamListener listener =
      Value(StreamListener::Listen(context->handle(), AddressFrom(address), backlog));
  return std::make_shared<StreamListenerObject>(context, std::move(listener));
}

StreamListenerObject::StreamListenerObject(std::shared_ptr<ContextObject> context,
                                           StreamListener listener)
    : context_(std::move(context)), listener_(std::move(listener)) {}

StreamListenerObject::~StreamListenerObject() {
  if (!closed_ && !context_->closed()) WarnUnclosed("StreamListener");
  Quietly([this] {
    const Unlocked unlocked;
    listener_ = StreamListener();
  });
}

std::shared_ptr<StreamObject> StreamListenerObject::Accept(const Seconds& timeout,
                                                           const py::dict& options) {
  const StreamOptions legal = StreamOptionsFrom(options, {});
  Patience patience(*context_, timeout);
  for (;;) {
    const absl::Time until = patience.NextDeadline();
    absl::StatusOr<Stream> stream = Stream();
    {
      const Unlocked unlocked;
      stream = listener_.Accept(legal, until);
    }
    HandleSignals();
    if (stream.ok()) return std::make_shared<StreamObject>(context_, *std::move(stream));
    if (!patience.GoesOn(stream.status())) Raise(stream.status());
  }
}

void StreamListenerObject::Close() {
  if (std::exchange(closed_, true) || context_->closed()) return;
  listener_.Close();
}

}  // namespace esdp::python
