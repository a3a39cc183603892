#include <algorithm>
#include <string>

#include "impl/base/bytes.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/socket/socket_state.h"
#include "impl/sockets/stream/stream_state.h"

// Sends and receives: arguments checked, a slot reserved, the transfer handed to the shard.

namespace esdp::sockets {

TransferFlags TransferFlags::Of(SendFlags flags) {
  const auto bits = static_cast<uint32_t>(flags);
  constexpr auto kUrgent = static_cast<uint32_t>(SendFlags::kUrgent);
  return {.is_send = true, .urgent = (bits & kUrgent) != 0, .unknown = bits & ~kUrgent};
}

TransferFlags TransferFlags::Of(RecvFlags flags) {
  const auto bits = static_cast<uint32_t>(flags);
  constexpr auto kAll = static_cast<uint32_t>(RecvFlags::kWaitAll);
  return {.wait_all = (bits & kAll) != 0, .unknown = bits & ~kAll};
}

absl::Status TransferFlags::CheckLength(uint64_t length) const {
  if (!urgent || length > 0) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument,
                   "an urgent send has no byte: its last one would be the urgent one");
}

namespace {

absl::Status Check(const TransferFlags& flags, const OpArgs& args) {
  if (flags.unknown != 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "bits " + std::to_string(flags.unknown) + " of the flags mean nothing: use " +
                         (flags.is_send ? "kNone or kUrgent" : "kNone or kWaitAll"));
  }
  if (args.path > Path::kZeroCopy) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "OpArgs::path is none of kByThreshold, kCopy and kZeroCopy");
  }
  if (args.complete_at > CompleteAt::kDelivered) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "OpArgs::complete_at is neither kReusable nor kDelivered");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StreamState::CanTransfer(bool is_send) const {
  if (closing_.load(std::memory_order_relaxed)) {
    return ClosedHandle();
  }
  switch (phase_.load()) {
    case Phase::kConnected:
      if (failed_.load(std::memory_order_relaxed) && (is_send || !KeepsInput())) {
        return EndedStatus();
      }
      if (is_send && write_shut_.load(std::memory_order_relaxed)) {
        return MakeError(ErrorKind::kShutDown, "Shutdown has ended the sending direction");
      }
      return absl::OkStatus();
    case Phase::kEnded:
      return EndedStatus();
    case Phase::kIdle:
    case Phase::kConnecting:
      break;
  }
  return socket_.WhyNotConnected();
}

bool StreamState::AtEndOfStream(bool is_send) const {
  return phase_ == Phase::kEnded && !is_send && !closing_ && KeepsInput();
}

bool StreamState::KeepsInput() const {
  const std::lock_guard lock(mutex_);
  return cause_.ending == provider::EndReason::kOk || cause_.input_kept;
}

absl::StatusOr<Operation*> StreamState::NewTransfer(EventType type, const TransferFlags& flags,
                                                    const OpArgs& args) {
  if (absl::Status legal = Check(flags, args); !legal.ok()) return legal;
  const bool is_send = flags.is_send;
  transfers_.fetch_add(1);  // before the look at the state
  absl::Status can = CanTransfer(is_send);
  if (!can.ok() && AtEndOfStream(is_send)) can = absl::OkStatus();
  absl::StatusOr<Operation*> made =
      can.ok() ? context_.NewOperation(type, id_, args) : absl::StatusOr<Operation*>(can);
  if (!made.ok()) {
    OnTransferGone();
    return made;
  }
  Operation& operation = **made;
  operation.owner = Self();
  OperationTransfer& transfer = operation.transfer;
  transfer.is_send = is_send;
  transfer.wait_all = flags.wait_all;
  transfer.urgent = flags.urgent;
  transfer.shown = flags.shown;
  transfer.until_advert = flags.until_advert;
  transfer.tended = flags.tended;
  transfer.path = static_cast<provider::Path>(args.path);
  transfer.complete_at = static_cast<provider::CompleteAt>(args.complete_at);
  transfer.at_deadline =
      deadline_policy_.load(std::memory_order_relaxed) == DeadlinePolicy::kAbortConnection
          ? provider::CancelMode::kAbortConnection
          : provider::CancelMode::kIfNotStarted;
  transfer.zcopy_min =
      (is_send ? zcopy_send_min_ : zcopy_recv_min_).load(std::memory_order_relaxed);
  transfer.adaptive = is_send && learns_threshold_.load(std::memory_order_relaxed) &&
                      transfer.zcopy_min != 0 && transfer.zcopy_min != kNever;
  transfer.deadline = context_.ToShardTime(args.deadline);
  return made;
}

static_assert(static_cast<int>(Path::kZeroCopy) == static_cast<int>(provider::Path::kZeroCopy));
static_assert(static_cast<int>(CompleteAt::kDelivered) ==
              static_cast<int>(provider::CompleteAt::kDelivered));

absl::Status StreamState::CheckSlice(const Slice& slice, bool is_send) const {
  const RegionState* region = SliceAccess::StateOf(slice);
  if (region == nullptr) {
    return MakeError(ErrorKind::kInvalidArgument,
                     SliceAccess::IsEmpty(slice)
                         ? "a slice is empty: take it from a Region that is open"
                         : "the region of a slice is gone: keep a handle of it");
  }
  if (region->context() != &context_) {
    return MakeError(ErrorKind::kInvalidArgument, "a slice belongs to another Context");
  }
  if (!region->open()) {
    return MakeError(ErrorKind::kInvalidArgument, "the region of a slice has been closed");
  }
  if (!is_send && !region->local_write()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the region of a slice was registered without local_write");
  }
  return absl::OkStatus();
}

absl::Status StreamState::AddPiece(Operation& operation, const Slice& slice, bool is_send) const {
  if (absl::Status legal = CheckSlice(slice, is_send); !legal.ok()) return legal;
  RegionState* region = SliceAccess::StateOf(slice);
  operation.memory.push_back({region->memory(), slice.offset(), slice.length()});
  if (operation.regions.empty() || operation.regions.back().get() != region) {
    operation.regions.push_back(region->shared_from_this());
  }
  return absl::OkStatus();
}

absl::Status StreamState::ClaimMemory(const Operation& operation) const {
  if (operation.transfer.is_send) return absl::OkStatus();
  ReceiveRanges& ranges = context_.operations().ranges();
  const bool is_free = std::ranges::all_of(operation.memory, [&](const provider::Piece& piece) {
    std::byte* const base = provider::Shard::Describe(*piece.region).base;
    return ranges.Claim(operation.id, {base + piece.offset, piece.length});
  });
  if (is_free) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument,
                   "a receive into these bytes is outstanding: wait for its event, or take others");
}

absl::StatusOr<bool> StreamState::IsForShard(Operation& operation) {
  if constexpr (kReceivesAreWatched) {
    if (absl::Status claimed = ClaimMemory(operation); !claimed.ok()) return claimed;
  }
  operation.transfer.pieces = operation.memory;
  if (AtEndOfStream(operation.transfer.is_send)) {
    FinishAtEndOfStream(operation);
    return false;
  }
  return !behind_files_.IsBusy(operation.transfer.is_send) || !behind_files_.Hold(operation);
}

absl::StatusOr<OpId> StreamState::Launch(Operation& operation) {
  const OpId op = operation.id;  // the operation may have ended before Submit returns
  const absl::StatusOr<bool> submits = IsForShard(operation);
  if (!submits.ok()) return submits.status();
  if (*submits) SubmitTransfer(operation.transfer);
  return op;
}

// What is not launched was never accepted.
template <typename Fill>
absl::StatusOr<OpId> StreamState::FillAndLaunch(Operation& operation, Fill fill) {
  absl::StatusOr<OpId> launched = OrNoMemory([&]() -> absl::StatusOr<OpId> {
    if (absl::Status filled = fill(operation); !filled.ok()) return filled;
    return Launch(operation);
  });
  if (!launched.ok()) context_.Discard(operation);
  return launched;
}

void StreamState::FinishAtEndOfStream(Operation& operation) {
  Event event;
  event.flags = kEof | (operation.transfer.wait_all ? kWaitAll : 0u);
  event.stream_offset = bytes_received_;
  context_.Finish(operation, event);
}

void StreamState::FinishTooLate(Operation& operation) {
  if (AtEndOfStream(operation.transfer.is_send)) return FinishAtEndOfStream(operation);
  context_.Finish(operation, EndedStatus());
}

absl::StatusOr<OpId> StreamState::Post(EventType type, absl::Span<const Slice> slices,
                                       const TransferFlags& flags, const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (slices.empty()) {
    return MakeError(ErrorKind::kInvalidArgument, "a list of slices is empty");
  }
  if (slices.size() == 1 && immediate_.Tries(flags, slices[0].length()) &&
      CheckSlice(slices[0], flags.is_send).ok()) {
    const ConstBytes bytes = ImmediateSends::BytesOf(slices[0]);
    if (const OpId op = immediate_.TrySend(type, bytes, flags, args); op != OpId::kNone) return op;
  }
  absl::StatusOr<Operation*> operation = NewTransfer(type, flags, args);
  if (!operation.ok()) return operation.status();
  return FillAndLaunch(**operation, [&](Operation& filled) {
    uint64_t length = 0;
    for (const Slice& slice : slices) {
      if (absl::Status added = AddPiece(filled, slice, flags.is_send); !added.ok()) return added;
      length += slice.length();
    }
    return flags.CheckLength(length);
  });
}

absl::StatusOr<OpId> StreamState::PostSendCopy(std::span<const std::byte> bytes,
                                               const TransferFlags& flags, const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (absl::Status legal = flags.CheckLength(bytes.size()); !legal.ok()) return legal;
  if (immediate_.Tries(flags, bytes.size())) {
    const OpId op = immediate_.TrySend(EventType::kSend, {bytes.data(), bytes.size()}, flags, args);
    if (op != OpId::kNone) return op;
  }
  absl::StatusOr<Operation*> operation = NewTransfer(EventType::kSend, flags, args);
  if (!operation.ok()) return operation.status();
  return FillAndLaunch(**operation, [&](Operation& filled) {
    const auto range = context_.bounce_pool().Take(context_, bounce_share_, bytes.size());
    if (!range.ok()) return range.status();
    CopyBytes(range->memory, bytes);
    filled.bounce = range->block;
    filled.memory.push_back(range->piece);
    return absl::OkStatus();
  });
}

absl::StatusOr<OpId> StreamState::PostRecvCopy(std::span<std::byte> bytes,
                                               const TransferFlags& flags, const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  absl::StatusOr<Operation*> operation = NewTransfer(EventType::kRecv, flags, args);
  if (!operation.ok()) return operation.status();
  return FillAndLaunch(**operation, [&](Operation& filled) {
    provider::Shard::NameUnregistered(filled.unregistered, bytes);
    filled.memory.push_back({filled.unregistered.get(), 0, bytes.size()});
    return absl::OkStatus();
  });
}

absl::StatusOr<OpId> StreamState::AwaitUrgent(const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  absl::StatusOr<Operation*> operation = NewTransfer(EventType::kUrgent, TransferFlags{}, args);
  if (!operation.ok()) return operation.status();
  return FillAndLaunch(**operation, [](Operation& filled) {
    filled.transfer.awaits_urgent = true;
    return absl::OkStatus();
  });
}

}  // namespace esdp::sockets
