#include "impl/sockets/blocking/writer.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/memory/registration.h"
#include "impl/sockets/stream/stream_state.h"
#include "impl/sockets/stream/transfer_flags.h"

namespace esdp::sockets {
namespace {

// What a registration takes and gives is not worth it below.
constexpr size_t kChunkMin = 4096;
// Of the ring at a time.
constexpr size_t kSendsMax = 96;
// These, the chunks of a call, and a shutdown.
constexpr uint32_t kDepth = kSendsMax + kChunksMax + 1;

// Nothing is wrong with the connection: what is under way ends with events.
bool IsInterruption(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == ErrorKind::kSignal || kind == ErrorKind::kDeadlineExceeded ||
         kind == ErrorKind::kShutDown;
}

}  // namespace

BlockingWriter::BlockingWriter(std::shared_ptr<ContextState> context, StreamState& stream,
                               BlockingUsage& usage)
    : context_(std::move(context)), stream_(stream), usage_(usage), lane_(context_, kDepth) {}

absl::StatusOr<size_t> BlockingWriter::Write(Pieces pieces, const WriteArgs& args,
                                             const BlockingOptions& options) {
  const Lane::Turn turn(lane_, args.wait ? args.deadline : absl::InfinitePast());
  if (!turn.status().ok()) return turn.status();
  if (absl::Status opened = ring_.Open(context_, options.send_buffer_bytes); !opened.ok()) {
    return opened;
  }
  Collect();
  size_t left = 0;
  for (const auto& piece : pieces) left += piece.size();
  if (args.urgent && left == 0) {
    return MakeError(ErrorKind::kInvalidArgument, "an urgent write has no byte");
  }
  Call call{args, options};
  call.copies = !args.wait || args.path == Path::kCopy || options.patience <= absl::ZeroDuration();
  const Trial trial = BeginTrial(pieces.size(), left, call);
  for (const auto& piece : pieces) {
    if (!call.status.ok()) break;
    std::span<const std::byte> bytes(piece.data(), piece.size());
    left -= bytes.size();
    if (GoesZeroCopy(bytes.size(), call)) {
      // An urgent byte goes in a message.
      const size_t urgent = args.urgent && left == 0 ? 1 : 0;
      call.status = PostStaged(/*urgent=*/false, call);
      if (!call.status.ok()) break;
      const size_t before = call.moved;
      WriteZeroCopy(bytes.first(bytes.size() - urgent), call);
      bytes = bytes.subspan(call.moved - before);
    }
    if (call.status.ok()) Copy(bytes, left > 0, args.urgent && left == 0, call);
  }
  if (call.status.ok()) call.status = PostStaged(/*urgent=*/false, call);
  EndTrial(trial, call);
  has_room_.store(HasRoom(), std::memory_order_relaxed);
  sends_.store(ring_.posted(), std::memory_order_relaxed);
  if (call.moved > 0 || call.status.ok()) return call.moved;
  return call.status;
}

// --- which way ---------------------------------------------------------------------------------

BlockingWriter::Trial BlockingWriter::BeginTrial(size_t pieces, size_t bytes, Call& call) {
  const BlockingOptions& options = call.options;
  call.zero_copy_from =
      options.adapts ? threshold_.in_force(options.zero_copy_from) : options.zero_copy_from;
  const bool decides = options.adapts && !call.copies && pieces == 1 && !call.args.urgent &&
                       call.args.path == Path::kByThreshold;
  if (!decides) return {};
  Trial trial{threshold_.Begin(bytes, options.zero_copy_from), bytes};
  call.zero_copy_from = trial.plan.zero_copy ? bytes : bytes + 1;
  if (!trial.plan.measured) return trial;
  // What others have left in the ring is none of its cost.
  if (!trial.plan.zero_copy || trial.plan.probes) Drain(call);
  trial.plan.measured = ring_.empty() && call.interrupted.ok();
  trial.begun = context_->shard().Now();
  return trial;
}

void BlockingWriter::EndTrial(const Trial& trial, Call& call) {
  if (!trial.plan.measured || !call.status.ok() || call.moved != trial.bytes) return;
  if (trial.plan.zero_copy && call.copies) return;
  if (!trial.plan.zero_copy) Drain(call);
  call.status = absl::OkStatus();
  if (!ring_.empty()) return;
  threshold_.End(trial.bytes, trial.plan, context_->shard().Now() - trial.begun);
  usage_.learned_threshold.store(threshold_.in_force(0), std::memory_order_relaxed);
}

void BlockingWriter::Drain(Call& call) {
  const absl::Time until = std::min(call.args.deadline, context_->Now() + call.options.patience);
  while (!ring_.empty()) {
    const absl::StatusOr<Event> event = lane_.Next(until, call.options.on_signal);
    if (event.ok()) {
      OnEvent(*event);
      continue;
    }
    const ErrorKind kind = KindOf(event.status());
    if (kind == ErrorKind::kSignal) {
      // There may be room all the same.
      call.interrupted = event.status();
      call.copies = true;
    } else if (kind != ErrorKind::kDeadlineExceeded) {
      call.status = event.status();
    }
    return;
  }
}

// --- zero-copy -----------------------------------------------------------------------------------

bool BlockingWriter::GoesZeroCopy(size_t bytes, const Call& call) const {
  if (call.copies || bytes < kChunkMin) return false;
  return call.args.path == Path::kZeroCopy || bytes >= call.zero_copy_from;
}

void BlockingWriter::WriteZeroCopy(std::span<const std::byte> bytes, Call& call) {
  Chunks chunks;
  chunks.out.reserve(call.options.chunks_max);
  absl::Time progress = context_->Now();
  do {
    while (!chunks.stops && chunks.posted < bytes.size() &&
           chunks.out.size() < call.options.chunks_max) {
      PostChunk(bytes.subspan(chunks.posted), chunks, call);
    }
    if (!chunks.out.empty()) AwaitChunk(chunks, call, progress);
  } while (!chunks.out.empty() || (!chunks.stops && chunks.posted < bytes.size()));
  call.moved += chunks.moved;
  call.status = chunks.status;
}

void BlockingWriter::PostChunk(std::span<const std::byte> bytes, Chunks& chunks, Call& call) {
  bytes = bytes.first(std::min(bytes.size(), call.options.chunk_bytes));
  RegisterOptions options;
  options.local_write = false;
  // Nothing writes to a region without local_write.
  auto* const memory = const_cast<std::byte*>(bytes.data());
  absl::StatusOr<Region> region = Register(context_, absl::MakeSpan(memory, bytes.size()), options);
  if (!region.ok()) {
    // Too much is pinned, or it is memory that cannot be: the rest of the call is copied.
    usage_.register_failures.fetch_add(1, std::memory_order_relaxed);
    chunks.stops = call.copies = true;
    return;
  }
  const Slice slice = region->slice();
  const absl::StatusOr<OpId> op = stream_.Post(EventType::kSend, absl::MakeConstSpan(&slice, 1),
                                               TransferFlags::Of(SendFlags::kNone),
                                               {.queue = lane_.queue(), .path = Path::kZeroCopy});
  if (!op.ok()) {
    chunks.stops = true;
    chunks.status = op.status();
    return;
  }
  usage_.OnRegistered(bytes.size());
  chunks.posted += bytes.size();
  chunks.out.push_back({*op, bytes.size(), *std::move(region)});
}

void BlockingWriter::AwaitChunk(Chunks& chunks, Call& call, absl::Time& progress) {
  const absl::Time patient_until = progress + call.options.patience;
  const absl::Time until = std::min(call.args.deadline, patient_until);
  const absl::StatusOr<Event> event = lane_.Next(until, call.options.on_signal);
  if (event.ok()) {
    progress = context_->Now();
    return OnChunkEvent(*event, chunks);
  }
  chunks.stops = true;
  if (!IsInterruption(event.status())) {
    // The Context has been closed under the call: no event will come, and nothing is reached.
    chunks.status = event.status();
    return Forget(chunks);
  }
  const bool late = KindOf(event.status()) == ErrorKind::kDeadlineExceeded;
  const bool impatient = late && patient_until < call.args.deadline;
  if (impatient) {
    usage_.patience_ran_out.fetch_add(1, std::memory_order_relaxed);
    call.copies = true;
  } else {
    chunks.status = event.status();
  }
  TakeBack(chunks, call, /*returns=*/!impatient);
}

// What the peer has not read was never in the stream. The newest first, so that none begins because
// an older one has made way. Where the call `returns` it takes cancel_grace at most, and then the
// connection is aborted: the peer may take nothing of what it has asked to be sent.
void BlockingWriter::TakeBack(Chunks& chunks, const Call& call, bool returns) {
  for (size_t i = chunks.out.size(); i > 0; --i) stream_.EndShort(chunks.out[i - 1].op);
  absl::Time until = call.args.deadline;
  const auto must_return = [&] { until = context_->Now() + stream_.CancelGrace(); };
  if (returns) must_return();
  while (!chunks.out.empty()) {
    const absl::StatusOr<Event> event =
        lane_.Next(until, returns ? OnSignal::kGoesOn : call.options.on_signal);
    if (event.ok()) {
      OnChunkEvent(*event, chunks);
    } else if (!IsInterruption(event.status())) {
      chunks.status = event.status();
      Forget(chunks);
    } else if (!returns) {
      chunks.status = event.status();
      returns = true;
      must_return();
    } else if (KindOf(event.status()) == ErrorKind::kDeadlineExceeded) {
      stream_.Abort();
      until = absl::InfiniteFuture();
    }
  }
}

void BlockingWriter::Forget(Chunks& chunks) {
  for (const Chunk& chunk : chunks.out) usage_.OnDeregistered(chunk.registered);
  chunks.out.clear();
}

void BlockingWriter::OnChunkEvent(const Event& event, Chunks& chunks) {
  const auto found =
      std::ranges::find_if(chunks.out, [&](const Chunk& chunk) { return chunk.op == event.op; });
  if (found == chunks.out.end()) return OnEvent(event);
  chunks.moved += event.bytes;
  usage_.OnDeregistered(found->registered);
  chunks.out.erase(found);
  if (event.ok() || event.kind == ErrorKind::kCancelled) return;
  chunks.stops = true;
  chunks.status = event.status();
}

absl::StatusOr<size_t> BlockingWriter::Write(const Slice& slice, const WriteArgs& args,
                                             const BlockingOptions& options) {
  if (!args.wait) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "a Write of registered memory waits: write its bytes instead");
  }
  const Lane::Turn turn(lane_, args.deadline);
  if (!turn.status().ok()) return turn.status();
  Collect();
  const absl::StatusOr<OpId> op =
      stream_.Post(EventType::kSend, absl::MakeConstSpan(&slice, 1),
                   TransferFlags::Of(args.urgent ? SendFlags::kUrgent : SendFlags::kNone),
                   {.queue = lane_.queue(), .path = args.path});
  if (!op.ok()) return op.status();
  const Call call{args, options};
  Chunks chunks;
  chunks.out.push_back({*op, 0, Region()});
  while (!chunks.out.empty()) {
    const absl::StatusOr<Event> event = lane_.Next(args.deadline, options.on_signal);
    if (event.ok()) {
      OnChunkEvent(*event, chunks);
      continue;
    }
    chunks.status = event.status();
    TakeBack(chunks, call, /*returns=*/true);
  }
  if (chunks.moved > 0 || chunks.status.ok()) return chunks.moved;
  return chunks.status;
}

// --- copied --------------------------------------------------------------------------------------

bool BlockingWriter::HasRoom() const { return ring_.posted() < kSendsMax && !ring_.full(); }

void BlockingWriter::Collect() {
  while (const std::optional<Event> event = lane_.TryNext()) OnEvent(*event);
}

absl::Status BlockingWriter::PostStaged(bool urgent, Call& call) {
  if (ring_.staged() == 0) return absl::OkStatus();
  const Slice slice = ring_.staged_slice();
  TransferFlags flags = TransferFlags::Of(urgent ? SendFlags::kUrgent : SendFlags::kNone);
  flags.tended = !call.args.wait;
  const absl::StatusOr<OpId> op =
      stream_.Post(EventType::kSend, absl::MakeConstSpan(&slice, 1), flags,
                   {.queue = lane_.queue(), .path = Path::kCopy});
  if (op.ok()) {
    ring_.OnPosted(*op);
  } else {
    call.moved -= ring_.staged();
    ring_.Unstage();
  }
  return op.status();
}

// `more`: another piece follows, and may go in the same message.
void BlockingWriter::Copy(std::span<const std::byte> bytes, bool more, bool urgent, Call& call) {
  while (!bytes.empty()) {
    const size_t staged = ring_.posted() < kSendsMax ? ring_.Stage(bytes) : 0;
    if (staged > 0) usage_.OnCopied(staged);
    bytes = bytes.subspan(staged);
    call.moved += staged;
    if (bytes.empty() && more) return;
    if (ring_.staged() > 0) {
      call.status = PostStaged(urgent && bytes.empty(), call);
    } else {
      AwaitRoom(call);
    }
    if (!call.status.ok()) return;
  }
}

void BlockingWriter::AwaitRoom(Call& call) {
  if (!call.args.wait) {
    if (const std::optional<Event> event = lane_.TryNext()) return OnEvent(*event);
    call.status = MakeError(ErrorKind::kWouldBlock, "the send buffer is full");
    return;
  }
  if (!call.interrupted.ok()) {
    call.status = call.interrupted;
    return;
  }
  usage_.send_buffer_waits.fetch_add(1, std::memory_order_relaxed);
  const absl::StatusOr<Event> event = lane_.Next(call.args.deadline, call.options.on_signal);
  if (event.ok()) {
    OnEvent(*event);
  } else {
    call.status = event.status();
  }
}

// Not in turn: what another thread is writing ends there, as its posts are refused from now on.
absl::Status BlockingWriter::Shutdown() {
  return stream_.Shutdown({.queue = lane_.queue()}).status();
}

}  // namespace esdp::sockets
