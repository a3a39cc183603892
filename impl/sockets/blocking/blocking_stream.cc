#include "impl/sockets/blocking/blocking_stream.h"

#include <string>
#include <utility>

#include "absl/types/span.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/socket/socket_access.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {
namespace {

absl::Status OutOfRange(const char* name, uint64_t least, uint64_t most) {
  return MakeError(ErrorKind::kInvalidArgument, std::string("StreamOptions::") + name + " is " +
                                                    std::to_string(least) + " .. " +
                                                    std::to_string(most));
}

}  // namespace

absl::Status BlockingStream::CheckOptions(const StreamOptions& options) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (options.chunk_bytes && (*options.chunk_bytes < 4096 || *options.chunk_bytes > kMost)) {
    return OutOfRange("chunk_bytes", 4096, kMost);
  }
  if (options.chunks_max && (*options.chunks_max < 1 || *options.chunks_max > kChunksMax)) {
    return OutOfRange("chunks_max", 1, kChunksMax);
  }
  if (options.send_buffer_bytes < 65536 || options.send_buffer_bytes > kMost) {
    return OutOfRange("send_buffer_bytes", 65536, kMost);
  }
  if (options.patience < absl::ZeroDuration()) {
    return MakeError(ErrorKind::kInvalidArgument, "StreamOptions::patience is negative");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlockingStream>> BlockingStream::Of(
    const std::shared_ptr<ContextState>& context, Socket socket, const StreamOptions& options) {
  const ContextCall call(context.get());
  if (!call.ok()) return call.status();
  const std::shared_ptr<SocketState> state = SocketAccess::StateOf(socket);
  if (state == nullptr) return MakeError(ErrorKind::kBadHandle, "the socket handle is empty");
  if (&state->context() != context.get()) {
    return MakeError(ErrorKind::kInvalidArgument, "the socket belongs to another Context");
  }
  if (absl::Status legal = CheckOptions(options); !legal.ok()) return legal;
  if (state->closing()) return ClosedHandle();
  // One that has ended since it was accepted tells so when it is read.
  if (!state->stream().begun()) return state->WhyNotConnected();
  auto made = std::make_unique<BlockingStream>(context, std::move(socket), state->stream());
  made->SetOptions(options);
  return made;
}

BlockingStream::BlockingStream(std::shared_ptr<ContextState> context, Socket socket,
                               StreamState& stream)
    : context_(std::move(context)),
      kept_(stream.Self()),
      stream_(stream),
      reader_(context_, stream_, usage_),
      writer_(context_, stream_, usage_),
      socket_(std::move(socket)) {}

// The socket may be another Stream's by now, which has a listener of its own.
BlockingStream::~BlockingStream() { kept_->polls().ForgetListener(pair_.get()); }

absl::StatusOr<size_t> BlockingStream::Read(BlockingReader::Pieces pieces, const ReadArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::StatusOr<size_t> read = reader_.Read(pieces, args, OptionsOfCall(args.deadline));
  Refresh();
  return read;
}

absl::StatusOr<std::byte> BlockingStream::ReadUrgent(bool peek) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::StatusOr<std::byte> read = reader_.ReadUrgent(peek, OptionsOfCall(absl::InfiniteFuture()));
  Refresh();
  return read;
}

absl::StatusOr<bool> BlockingStream::AtUrgentMark() {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  reader_.LookForUrgent(OptionsOfCall(absl::InfiniteFuture()));
  Refresh();
  return reader_.at_mark();
}

absl::StatusOr<size_t> BlockingStream::Write(BlockingWriter::Pieces pieces, const WriteArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::StatusOr<size_t> written = writer_.Write(pieces, args, OptionsOfCall(args.deadline));
  size_t asked = 0;
  for (const auto& piece : pieces) asked += piece.size();
  Refresh(/*refused=*/!args.wait && written.value_or(0) < asked);
  return written;
}

absl::StatusOr<size_t> BlockingStream::Write(const Slice& slice, const WriteArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::StatusOr<size_t> written = writer_.Write(slice, args, OptionsOfCall(args.deadline));
  Refresh();
  return written;
}

absl::Status BlockingStream::Shutdown() {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::Status status = writer_.Shutdown();
  Refresh();
  return status;
}

absl::StatusOr<int> BlockingStream::fd() {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  std::shared_ptr<ReadinessPair> pair;
  {
    const std::lock_guard lock(mutex_);
    if (pair_ == nullptr) {
      absl::StatusOr<std::shared_ptr<ReadinessPair>> opened =
          ReadinessPair::Open(stream_, writer_.events());
      if (!opened.ok()) return opened.status();
      pair_ = *std::move(opened);
      pair_->SetEdges(edges_);
      shows_.store(true, std::memory_order_release);
    }
    pair = pair_;
  }
  BeginToShow(pair);
  return pair->fd();
}

void BlockingStream::SetEdges(bool on) {
  const std::lock_guard lock(mutex_);
  edges_ = on;
  if (pair_ != nullptr) pair_->SetEdges(on);
}

void BlockingStream::BeginToShow(const std::shared_ptr<ReadinessPair>& pair) {
  stream_.polls().SetListener(pair);
  stream_.polls().Watch();
  Refresh();
}

absl::Status BlockingStream::ShowIn(int shown, int hidden) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  std::shared_ptr<ReadinessPair> pair;
  {
    const std::lock_guard lock(mutex_);
    if (pair_ != nullptr) {
      return MakeError(ErrorKind::kWrongState, "the readiness is shown in a descriptor already");
    }
    pair = pair_ = ReadinessPair::Over(stream_, writer_.events(), {shown, hidden});
    pair_->SetEdges(edges_);
    shows_.store(true, std::memory_order_release);
  }
  BeginToShow(pair);
  return absl::OkStatus();
}

std::optional<std::pair<int, int>> BlockingStream::StopShowing() {
  std::shared_ptr<ReadinessPair> pair;
  {
    const std::lock_guard lock(mutex_);
    shows_.store(false, std::memory_order_release);
    pair = std::exchange(pair_, nullptr);
  }
  if (pair == nullptr) return std::nullopt;
  kept_->polls().ForgetListener(pair.get());
  const provider::SocketPair::Ends ends = pair->Release();
  if (ends.shown < 0) return std::nullopt;
  return std::pair(ends.shown, ends.hidden);
}

void BlockingStream::Refresh(bool refused) {
  if (!shows_.load(std::memory_order_acquire)) return;
  std::shared_ptr<ReadinessPair> pair;
  {
    const std::lock_guard lock(mutex_);
    pair = pair_;
  }
  if (pair == nullptr) return;
  pair->Update(refused, [&] {
    return ReadinessPair::Own{.readable = reader_.ahead() > 0,
                              .urgent = reader_.shows_urgent(),
                              .room = writer_.has_room(),
                              .sends = writer_.sends()};
  });
}

void BlockingStream::SetOptions(const StreamOptions& options) {
  bool moves_urgent = false;
  {
    const std::lock_guard lock(mutex_);
    moves_urgent = options.urgent != options_.urgent;
    options_ = options;
  }
  if (moves_urgent) (void)AtUrgentMark();  // what can be read is another
}

StreamOptions BlockingStream::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

BlockingOptions BlockingStream::OptionsOfCall(absl::Time deadline) const {
  return OptionsInForce(options(), context_->transport(stream_.fabric()), deadline);
}

StreamReadiness BlockingStream::readiness() {
  StreamReadiness now;
  const ContextCall call(context_.get());
  if (!call.ok()) return {.readable = true, .peer_ended = true, .failed = true};
  stream_.polls().Watch();
  const uint32_t bits = stream_.polls().Bits();
  const size_t ahead = reader_.ahead();
  now.bytes = ahead + (reader_.mark_ahead() ? 0 : stream_.UnreadBytes());
  now.readable = now.bytes > 0 || (bits & kPollPeerEnded) != 0;
  now.writable = writer_.has_room() || writer_.events()->HasEvents() || !stream_.connected();
  now.writable = now.writable && !stream_.write_shut();
  now.urgent = (bits & kPollUrgent) != 0 || reader_.shows_urgent();
  now.peer_ended = (bits & kPollPeerEnded) != 0;
  now.failed = (bits & kPollFailed) != 0;
  return now;
}

absl::Status BlockingStream::Close(absl::Time deadline) {
  // Not in a lane: calls that wait there end with this one.
  auto queue = QueueState::Create(context_, {.depth = 1, .restart_on_signal = true});
  if (!queue.ok()) return queue.status();
  EventQueue closing = QueueAccess::Make(*std::move(queue));
  const absl::StatusOr<OpId> op =
      socket_.Close(CloseMode::kGraceful, {.queue = closing, .deadline = deadline});
  if (!op.ok()) return op.status();
  writer_.TellClosed();  // receives end with it; sends go on
  Event event;
  const auto taken = closing.Dequeue(absl::MakeSpan(&event, 1));
  return taken.ok() ? event.status() : taken.status();
}

void BlockingStream::Abort() {
  if (const auto state = SocketAccess::StateOf(socket_)) state->DropAlsoClosing();
}

StreamStats BlockingStream::Stats() const {
  StreamStats stats;
  stats.socket = socket_.Stats();
  stats.socket.payload_copies += usage_.copies.load(std::memory_order_relaxed);
  stats.socket.payload_copy_bytes += usage_.copied_bytes.load(std::memory_order_relaxed);
  stats.socket.adaptive_threshold = usage_.learned_threshold.load(std::memory_order_relaxed);
  stats.registrations = usage_.registrations.load(std::memory_order_relaxed);
  stats.registered_bytes = usage_.registered_bytes.load(std::memory_order_relaxed);
  stats.registered_now = usage_.registered_now.load(std::memory_order_relaxed);
  stats.patience_ran_out = usage_.patience_ran_out.load(std::memory_order_relaxed);
  stats.register_failures = usage_.register_failures.load(std::memory_order_relaxed);
  stats.read_ahead_bytes = usage_.read_ahead_bytes.load(std::memory_order_relaxed);
  stats.send_buffer_waits = usage_.send_buffer_waits.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace esdp::sockets
