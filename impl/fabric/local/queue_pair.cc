#include "impl/fabric/local/queue_pair.h"

#include <optional>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/soft/posting.h"

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

absl::Status QueuePair::PostSend(absl::Span<const SendWork> batch) {
  if (phase_ != Phase::kReady) return absl::FailedPreconditionError("the queue pair is not ready");
  if (sends_.size() + batch.size() > options_.send_work) {
    return absl::ResourceExhaustedError("the send queue is full: poll completions first");
  }
  ESDP_RETURN_IF_ERROR(soft::CheckSends(batch, id_, agreement_.initiator_depth, shared_.regions));
  // Before the first work, all that its course may take: how much waits at once is a matter of
  // chance.
  if (sends_.end() == 0) {
    sends_.Reserve(options_.send_work);
    reads_.Reserve(agreement_.initiator_depth);
    writes_.Reserve(options_.send_work);
  }
  soft::PushSends(batch, shared_.regions, sends_);
  pull_budget_ = kPulledAtPost;
  Transmit();
  return absl::OkStatus();
}

bool QueuePair::IsProved() const { return shared_.nonce && channel_->IsProved(*shared_.nonce); }

std::optional<ShownWindow> QueuePair::PlaceFor(bool is_proved, RegionId region,
                                               const std::byte* address, uint64_t length) {
  const bool may_have_file = is_proved || shared_.options.share == Share::kUser;
  const SharedRegion* const shared = may_have_file ? shared_.shared_regions.Find(region) : nullptr;
  if (shared != nullptr && channel_->Pass(*shared)) {
    return ShownWindow{.region = shared->number,
                       .address = static_cast<uint64_t>(address - shared->base),
                       .length = length};
  }
  if (!is_proved) return std::nullopt;
  return ShownWindow{.address = reinterpret_cast<uint64_t>(address), .length = length};
}

void QueuePair::Show(uint32_t key, RegionId region, const std::byte* address, uint64_t length) {
  const std::optional<ShownWindow> shown = PlaceFor(IsProved(), region, address, length);
  if (shown) (void)local::Show(channel_->windows(), key, *shown);
}

void QueuePair::TakeBack(RegionId region) {
  if (channel_ != nullptr) channel_->TakeBack(static_cast<uint64_t>(region));
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
  ESDP_RETURN_IF_ERROR(soft::CheckReceives(batch, shared_.regions));
  ReserveForReceives(receives_.size() + batch.size());
  soft::PushReceives(batch, shared_.regions, receives_);
  return absl::OkStatus();
}

void QueuePair::ReleaseUnusedReceives() {
  const uint64_t first_unused = next_received_ + (incoming_.active ? 1 : 0);
  for (uint64_t at = first_unused; at < receives_.end(); ++at) {
    soft::ReleasePages(receives_.At(at), receives_.entries());
  }
}

void QueuePair::OnPolled(const Completion& completion) {
  if (completion.opcode == Opcode::kReceive) {
    receives_.PopFront(shared_.regions);
    if (completion.lent != nullptr) ++lent_polled_;
  } else {
    sends_.PopFront(shared_.regions);
  }
}

bool QueuePair::Progress() {
  if (lent_polled_ != 0) ReturnLent(lent_polled_);
  if (phase_ == Phase::kClosing) return ProgressClosing();
  if (phase_ != Phase::kReady || !announced_) return false;
  pull_budget_ = kPulledInTurn;
  drained_ = false;
  // Looked at first: what was published before it is seen by what follows.
  const bool gone = peer_gone_;
  const PeerEnd end = channel_->peer_end();
  bool moved = Receive();
  if (phase_ != Phase::kReady) return true;
  if (WaitsForPeer() && Transmit()) moved = true;
  if (phase_ != Phase::kReady) return true;
  if (channel_->IsBroken()) return Breach();
  if (!moved && (gone || end.reason != EndReason::kNone)) {
    OnPeersEnd(end);
    return true;
  }
  if (moved) channel_->Disarm();
  return moved;
}

void QueuePair::TakeFiles(bool is_readable) {
  if (channel_ == nullptr) return;
  channel_->Disarm();
  if (channel_->DrainSocket(is_readable)) return;
  peer_gone_ = true;
  shared_.poller.Forget(std::exchange(watch_, soft::WatchId::kNone));
}

void QueuePair::OnProcessDied() {
  peer_gone_ = true;
  shared_.poller.Forget(std::exchange(process_watch_, soft::WatchId::kNone));
}

bool QueuePair::Sleep(bool is_hot) {
  if (channel_ == nullptr || !announced_) return true;
  if (IsPulling()) return false;
  if (channel_->is_armed() && (is_hot || !channel_->takes_any_bell())) return true;
  if (!channel_->Arm(waits_for_receive_, is_hot) && !channel_->IsBroken()) return true;
  channel_->Disarm();
  return false;
}

}  // namespace esdp::fabric::local
