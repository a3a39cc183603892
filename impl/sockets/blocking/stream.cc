#include "esdp/stream.h"

#include <functional>
#include <optional>
#include <utility>

#include "impl/base/made_once.h"
#include "impl/sockets/blocking/blocking_listener.h"
#include "impl/sockets/blocking/blocking_stream.h"
#include "impl/sockets/blocking/signal_rule.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"

namespace esdp {
namespace {

using sockets::BlockingListener;
using sockets::BlockingStream;

absl::Status EmptyHandle() {
  return sockets::MakeError(ErrorKind::kBadHandle, "the stream handle is empty");
}

// A call of a handle; memory that is missing becomes its answer.
template <typename State, typename Call>
auto Use(const State& state, Call call) -> decltype(call()) {
  if (state == nullptr) return EmptyHandle();
  return sockets::OrNoMemory(call);
}

using Post = std::function<absl::StatusOr<OpId>(Socket&, const OpArgs&)>;

// Of a new socket, once what `post` begins has ended.
absl::StatusOr<Stream> Connected(Context& context, Family family, const StreamOptions& options,
                                 absl::Time deadline, const Post& post) {
  if (absl::Status legal = BlockingStream::CheckOptions(options); !legal.ok()) return legal;
  absl::StatusOr<Socket> socket = context.CreateSocket(family);
  if (!socket.ok()) return socket.status();
  absl::StatusOr<EventQueue> queue =
      context.CreateQueue({.depth = 1, .restart_on_signal = options.restart_on_signal});
  if (!queue.ok()) return queue.status();
  const auto op = post(*socket, {.queue = *queue, .deadline = deadline});
  if (!op.ok()) return op.status();
  Event event;
  absl::StatusOr<size_t> taken = queue->Dequeue(absl::MakeSpan(&event, 1));
  if (!taken.ok()) {
    // Gives the attempt up, and waits for that: the queue has to stay until then.
    const absl::Status why = taken.status();
    (void)socket->Cancel(*op);
    do {
      taken = queue->Dequeue(absl::MakeSpan(&event, 1));
    } while (KindOf(taken.status()) == ErrorKind::kSignal);
    return why;
  }
  if (!event.ok()) return event.status();
  return Stream::Of(context, *std::move(socket), options);
}

}  // namespace

Stream::Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

absl::StatusOr<Stream> Stream::Of(Context& context, Socket connected,
                                  const StreamOptions& options) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Stream> {
    auto made =
        BlockingStream::Of(sockets::ContextAccess::StateOf(context), std::move(connected), options);
    if (!made.ok()) return made.status();
    Stream stream;
    stream.state_ = *std::move(made);
    return stream;
  });
}

absl::StatusOr<Stream> Stream::Connect(Context& context, const Address& address,
                                       const StreamOptions& options, absl::Time deadline) {
  return sockets::OrNoMemory([&] {
    return Connected(
        context, address.family(), options, deadline,
        [&](Socket& socket, const OpArgs& args) { return socket.Connect(address, args); });
  });
}

absl::StatusOr<Stream> Stream::Over(Context& context, int descriptor, StreamSide side,
                                    const StreamOptions& options, absl::Time deadline) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Stream> {
    if (side == StreamSide::kConnects) {
      return Connected(
          context, Family::kIpv4, options, deadline,
          [&](Socket& socket, const OpArgs& args) { return socket.ConnectOver(descriptor, args); });
    }
    if (absl::Status legal = BlockingStream::CheckOptions(options); !legal.ok()) return legal;
    absl::StatusOr<Socket> listener = context.CreateSocket(Family::kIpv4);
    if (!listener.ok()) return listener.status();
    if (absl::Status listens = listener->ListenOver(descriptor); !listens.ok()) return listens;
    BlockingListener accepts(sockets::ContextAccess::StateOf(context), *std::move(listener));
    absl::StatusOr<Socket> socket =
        accepts.Accept(deadline, sockets::SignalRule(options.restart_on_signal, deadline));
    if (!socket.ok()) return socket.status();
    return Of(context, *std::move(socket), options);
  });
}

absl::StatusOr<size_t> Stream::Read(absl::Span<std::byte> memory, const ReadArgs& args) {
  return ReadV(absl::MakeConstSpan(&memory, 1), args);
}

absl::StatusOr<size_t> Stream::ReadV(absl::Span<const absl::Span<std::byte>> pieces,
                                     const ReadArgs& args) {
  return Use(state_, [&] { return state_->Read({pieces.data(), pieces.size()}, args); });
}

absl::StatusOr<size_t> Stream::Write(absl::Span<const std::byte> bytes, const WriteArgs& args) {
  return WriteV(absl::MakeConstSpan(&bytes, 1), args);
}

absl::StatusOr<size_t> Stream::WriteV(absl::Span<const absl::Span<const std::byte>> pieces,
                                      const WriteArgs& args) {
  return Use(state_, [&] { return state_->Write({pieces.data(), pieces.size()}, args); });
}

absl::StatusOr<size_t> Stream::Write(const Slice& slice, const WriteArgs& args) {
  return Use(state_, [&] { return state_->Write(slice, args); });
}

absl::StatusOr<std::byte> Stream::ReadUrgent(bool peek) {
  return Use(state_, [&] { return state_->ReadUrgent(peek); });
}

absl::StatusOr<bool> Stream::AtUrgentMark() {
  return Use(state_, [&] { return state_->AtUrgentMark(); });
}

StreamReadiness Stream::readiness() const {
  return state_ == nullptr ? StreamReadiness{} : state_->readiness();
}

absl::Status Stream::ShutdownWrite() {
  return Use(state_, [&] { return state_->Shutdown(); });
}

absl::Status Stream::Close(absl::Time deadline) {
  return Use(state_, [&] { return state_->Close(deadline); });
}

void Stream::Abort() {
  if (state_ != nullptr) state_->Abort();
}

absl::Status Stream::SetOptions(const StreamOptions& options) {
  return Use(state_, [&] {
    absl::Status legal = BlockingStream::CheckOptions(options);
    if (legal.ok()) state_->SetOptions(options);
    return legal;
  });
}

absl::StatusOr<int> Stream::fd() {
  return Use(state_, [&] { return state_->fd(); });
}

absl::Status Stream::ShowIn(int shown, int hidden) {
  return Use(state_, [&] { return state_->ShowIn(shown, hidden); });
}

void Stream::SetEdges(bool on) {
  if (state_ != nullptr) state_->SetEdges(on);
}

std::optional<std::pair<int, int>> Stream::StopShowing() {
  return state_ == nullptr ? std::nullopt : state_->StopShowing();
}

StreamOptions Stream::options() const {
  return state_ == nullptr ? StreamOptions{} : state_->options();
}

StreamStats Stream::Stats() const { return state_ == nullptr ? StreamStats{} : state_->Stats(); }

Socket& Stream::socket() {
  static constinit MadeOnce<Socket> none;
  return state_ == nullptr ? none.Get() : state_->socket();
}

StreamListener::StreamListener() = default;
StreamListener::StreamListener(StreamListener&&) noexcept = default;
StreamListener& StreamListener::operator=(StreamListener&&) noexcept = default;
StreamListener::~StreamListener() = default;

absl::StatusOr<StreamListener> StreamListener::Listen(Context& context, const Address& address,
                                                      int backlog) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<StreamListener> {
    absl::StatusOr<Socket> socket = context.CreateSocket(address.family());
    if (!socket.ok()) return socket.status();
    if (absl::Status bound = socket->Bind(address); !bound.ok()) return bound;
    if (absl::Status listens = socket->Listen(backlog); !listens.ok()) return listens;
    StreamListener listener;
    listener.state_ = std::make_unique<BlockingListener>(sockets::ContextAccess::StateOf(context),
                                                         *std::move(socket));
    return listener;
  });
}

absl::StatusOr<Stream> StreamListener::Accept(const StreamOptions& options, absl::Time deadline) {
  return Use(state_, [&]() -> absl::StatusOr<Stream> {
    if (absl::Status legal = BlockingStream::CheckOptions(options); !legal.ok()) return legal;
    absl::StatusOr<Socket> socket =
        state_->Accept(deadline, sockets::SignalRule(options.restart_on_signal, deadline));
    if (!socket.ok()) return socket.status();
    auto made = BlockingStream::Of(state_->context(), *std::move(socket), options);
    if (!made.ok()) return made.status();
    Stream stream;
    stream.state_ = *std::move(made);
    return stream;
  });
}

Address StreamListener::local() const { return state_ == nullptr ? Address() : state_->local(); }

void StreamListener::Close() {
  if (state_ != nullptr) state_->Close();
}

}  // namespace esdp
