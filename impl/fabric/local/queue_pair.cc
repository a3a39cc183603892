#include "impl/fabric/local/queue_pair.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "impl/base/status.h"

namespace esdp::fabric::local {

using soft::ReceiveSlot;
using soft::SendSlot;

namespace {

// Of the peer's memory, in one call: a post is not to take long, nor a Poll.
constexpr size_t kPulledAtPost = size_t{64} << 10;
constexpr size_t kPulledInTurn = size_t{512} << 10;

}  // namespace

QueuePair::QueuePair(QueuePairId id, const QueuePairOptions& options, FabricShared& shared)
    : id_(id), options_(options), shared_(shared) {
  shared_.outbox.ReserveMore(options_.send_work);
}

QueuePair::~QueuePair() {
  CloseChannel(EndReason::kReset);
  while (sends_.size() != 0) sends_.PopFront(shared_.regions);
  while (receives_.size() != 0) receives_.PopFront(shared_.regions);
  shared_.regions.InvalidateAll(id_);
  shared_.outbox.ReserveLess(options_.send_work + receives_reserved_);
}

void QueuePair::Establish(std::unique_ptr<Channel> channel, soft::WatchId watch,
                          PeerProcess process, const Agreement& agreement,
                          ConstBytes private_data) {
  channel_ = std::move(channel);
  watch_ = watch;
  agreement_ = agreement;
  process_ = std::move(process);
  if (process_.watch().is_open()) {
    process_watch_ = shared_.poller.Watch(process_.watch().number(), soft::Watched::kProcess,
                                          static_cast<uint64_t>(id_), true, false);
  }
  phase_ = Phase::kReady;
  PushEvent(RendezvousType::kEstablished, Cause::kNone, "", private_data);
}

absl::Status QueuePair::CheckEntries(const ScatterEntry* entries, uint32_t count,
                                     bool writes) const {
  if (count > kScatterGatherMax) {
    return absl::OutOfRangeError("too many scatter entries: see limits()");
  }
  if (count != 0 && entries == nullptr) return absl::InvalidArgumentError("entries is null");
  uint64_t length = 0;
  for (uint32_t i = 0; i < count; ++i) {
    ESDP_RETURN_IF_ERROR(shared_.regions.CheckLocal(entries[i], writes));
    length += entries[i].length;
  }
  if (length > kMessageBytesMax) {
    return absl::OutOfRangeError("the message is longer than limits().message_bytes_max");
  }
  return absl::OkStatus();
}

absl::Status QueuePair::CheckSend(const SendWork& work) const {
  switch (work.opcode) {
    case Opcode::kInvalidate:
      if (shared_.regions.IsWindow(id_, work.invalidate_key)) return absl::OkStatus();
      return absl::NotFoundError("the key is no live window of this queue pair");
    case Opcode::kRead:
      if (agreement_.initiator_depth == 0) {
        return absl::FailedPreconditionError("RDMA reads were not negotiated: the depth is 0");
      }
      return CheckEntries(work.entries, work.entry_count, true);
    case Opcode::kSend:
    case Opcode::kWrite:
      return CheckEntries(work.entries, work.entry_count, false);
    case Opcode::kReceive:
      break;
  }
  return absl::InvalidArgumentError("receives are posted with PostReceive");
}

absl::Status QueuePair::PostSend(absl::Span<const SendWork> batch) {
  if (phase_ != Phase::kReady) return absl::FailedPreconditionError("the queue pair is not ready");
  if (sends_.size() + batch.size() > options_.send_work) {
    return absl::ResourceExhaustedError("the send queue is full: poll completions first");
  }
  for (const SendWork& work : batch) ESDP_RETURN_IF_ERROR(CheckSend(work));
  // Before the first work, all that its course may take: how much waits at once is a matter of
  // chance.
  if (sends_.end() == 0) {
    sends_.Reserve(options_.send_work);
    reads_.Reserve(agreement_.initiator_depth);
  }
  for (const SendWork& work : batch) {
    SendSlot slot;
    slot.work_id = work.work_id;
    slot.opcode = work.opcode;
    slot.has_invalidate = work.has_invalidate;
    slot.solicited = work.solicited;
    slot.remote = work.remote;
    slot.invalidate_key = work.invalidate_key;
    const uint32_t entries = work.opcode == Opcode::kInvalidate ? 0 : work.entry_count;
    sends_.PushBack(slot, work.entries, entries, shared_.regions);
  }
  pull_budget_ = kPulledAtPost;
  Transmit();
  return absl::OkStatus();
}

void QueuePair::Show(uint32_t key, const std::byte* address, uint64_t length) {
  if (!shared_.nonce || !channel_->IsProved(*shared_.nonce)) return;
  (void)local::Show(channel_->windows(), key, address, length);
}

// The completions of as many as were ever posted at once: that may be far fewer than there may be.
void QueuePair::ReserveForReceives(size_t receives) {
  if (receives <= receives_reserved_) return;
  shared_.outbox.ReserveAlso(receives - receives_reserved_);
  receives_reserved_ = receives;
}

absl::Status QueuePair::PostReceive(absl::Span<const ReceiveWork> batch) {
  if (phase_ == Phase::kClosing || phase_ == Phase::kEnded) {
    return absl::FailedPreconditionError("the queue pair has left the ready state");
  }
  if (receives_.size() + batch.size() > options_.receive_work) {
    return absl::ResourceExhaustedError("the receive queue is full: poll completions first");
  }
  for (const ReceiveWork& work : batch) {
    ESDP_RETURN_IF_ERROR(CheckEntries(work.entries, work.entry_count, true));
  }
  ReserveForReceives(receives_.size() + batch.size());
  for (const ReceiveWork& work : batch) {
    ReceiveSlot slot;
    slot.work_id = work.work_id;
    receives_.PushBack(slot, work.entries, work.entry_count, shared_.regions);
  }
  return absl::OkStatus();
}

void QueuePair::ReleaseUnusedReceives() {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first_unused = next_received_ + (incoming_.active ? 1 : 0);
  for (uint64_t at = first_unused; at < receives_.end(); ++at) {
    const ReceiveSlot& slot = receives_.At(at);
    for (uint32_t i = 0; i < slot.entry_count; ++i) {
      const ScatterEntry& entry = receives_.entries().At(slot.place.entry + i);
      const auto begin = reinterpret_cast<uintptr_t>(entry.address);
      const uintptr_t first = (begin + page - 1) / page * page;
      const uintptr_t end = (begin + entry.length) / page * page;
      // A page that is refused keeps its content, which is as good.
      if (first < end) (void)madvise(entry.address + (first - begin), end - first, MADV_DONTNEED);
    }
  }
}

void QueuePair::OnPolled(Opcode opcode) {
  if (opcode == Opcode::kReceive) {
    receives_.PopFront(shared_.regions);
  } else {
    sends_.PopFront(shared_.regions);
  }
}

bool QueuePair::Progress() {
  if (phase_ == Phase::kClosing) return ProgressClosing();
  if (phase_ != Phase::kReady || !announced_) return false;
  pull_budget_ = kPulledInTurn;
  // Looked at first: what was published before it is seen by what follows.
  const bool gone = peer_gone_;
  const PeerEnd end = channel_->peer_end();
  bool moved = Receive();
  if (phase_ != Phase::kReady) return true;
  if (HasUnsent() && Transmit()) moved = true;
  if (phase_ != Phase::kReady) return true;
  if (!moved && (gone || end.reason != EndReason::kNone)) {
    OnPeersEnd(end);
    return true;
  }
  if (moved) channel_->Disarm();
  return moved;
}

void QueuePair::OnSocketReady() {
  if (channel_ == nullptr) return;
  channel_->Disarm();
  if (channel_->DrainSocket()) return;
  peer_gone_ = true;
  shared_.poller.Forget(std::exchange(watch_, soft::WatchId::kNone));
}

void QueuePair::OnProcessDied() {
  peer_gone_ = true;
  shared_.poller.Forget(std::exchange(process_watch_, soft::WatchId::kNone));
}

bool QueuePair::Sleep() {
  if (channel_ == nullptr || !announced_) return true;
  if (pulling_) return false;
  if (channel_->is_armed()) return true;
  if (!channel_->Arm(waits_for_receive_) && !channel_->writer().broken()) return true;
  channel_->Disarm();
  return false;
}

}  // namespace esdp::fabric::local
