#ifndef ESDP_IMPL_FABRIC_SOFT_FABRIC_FRAME_H_
#define ESDP_IMPL_FABRIC_SOFT_FABRIC_FRAME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/port.h"
#include "impl/fabric/soft/posting.h"
#include "impl/fabric/soft/queue_pairs.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::soft {

absl::Status UnknownQueuePair();
absl::Status QueuePairAlreadyUsed();
absl::Status WindowNeedsAReadyQueuePair();
absl::Status UnbindOfAConnectedQueuePair();
// Cuts the depths to what the limits allow; OutOfRange for more work than they do.
absl::StatusOr<QueuePairOptions> FitOptions(const QueuePairOptions& options, const Limits& limits);

// What fabrics in software and real time do alike: the table of queue pairs, the refusals of
// CONTRACT.md that follow from it, and the way to the parts that do the work. What is left to the
// fabric is its progress.
//   Shared:     regions, outbox, poller, clock, options.
//   Rendezvous: made of a Shared and a QueuePairs<QueuePair>.
//
//   Owns:     queue pairs, the rendezvous, what these share.
//   Threads:  as Fabric.
//   Blocks:   never.
//   Units:    as Fabric.
//   Errors:   as Fabric.
template <typename QueuePair, typename Shared, typename Rendezvous>
class FabricFrame : public Fabric, protected QueuePairs<QueuePair> {
 public:
  Time Now() const final { return shared_.clock->Now(); }

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access) override {
    return shared_.regions.Register(base, length, access);
  }
  absl::Status Deregister(RegionId region) override { return shared_.regions.Deregister(region); }
  absl::StatusOr<RemoteRange> RegionKey(RegionId region) override {
    return shared_.regions.RegionKey(region);
  }
  absl::StatusOr<RemoteRange> Bind(QueuePairId id, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override {
    const QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return UnknownQueuePair();
    if (!queue_pair->IsReady()) return WindowNeedsAReadyQueuePair();
    return shared_.regions.Bind(id, region, address, length, access);
  }
  absl::Status Unbind(QueuePairId id, uint32_t key) final {
    const QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return UnknownQueuePair();
    if (queue_pair->IsConnected()) return UnbindOfAConnectedQueuePair();
    const bool was_bound = shared_.regions.Invalidate(id, key) == TagError::kNone;
    return was_bound ? absl::OkStatus() : UnknownWindow();
  }
  uint64_t Written(QueuePairId id, uint32_t key) const final {
    return shared_.regions.Written(id, key);
  }

  absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options) final {
    const absl::StatusOr<QueuePairOptions> fitted = FitOptions(options, this->limits());
    if (!fitted.ok()) return fitted.status();
    const uint64_t handle = queue_pairs_.Insert(nullptr);
    if (handle == kNoHandle) return absl::ResourceExhaustedError("no more queue pairs");
    const QueuePairId id{handle};
    *queue_pairs_.Find(handle) = std::make_unique<QueuePair>(id, *fitted, shared_);
    return id;
  }
  absl::Status DestroyQueuePair(QueuePairId id) final {
    QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return UnknownQueuePair();
    rendezvous_.GiveUp(id);
    queue_pair->Destroy();
    OnDestroyed(id);
    shared_.outbox.EraseEventsIf(
        [id](const RendezvousEvent& event) { return event.queue_pair == id; });
    queue_pairs_.Erase(static_cast<uint64_t>(id));
    return absl::OkStatus();
  }
  absl::Status PostSend(QueuePairId id, absl::Span<const SendWork> batch) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->PostSend(batch);
  }
  absl::Status PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->PostReceive(batch);
  }
  void ReleaseUnusedReceives(QueuePairId id) final {
    if (QueuePair* queue_pair = Find(id)) queue_pair->ReleaseUnusedReceives();
  }

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog) final {
    return rendezvous_.Listen(address, backlog);
  }
  absl::StatusOr<Address> ListenerAddress(ListenerId listener) const final {
    return rendezvous_.ListenerAddress(listener);
  }
  absl::Status StopListening(ListenerId listener) final {
    return rendezvous_.StopListening(listener);
  }
  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline) final {
    const absl::Status status = CheckUnused(id);
    return status.ok() ? rendezvous_.Connect(id, local, peer, private_data, deadline) : status;
  }
  absl::Status Accept(RequestId request, QueuePairId id, ConstBytes private_data) final {
    const absl::Status status = CheckUnused(id);
    return status.ok() ? rendezvous_.Accept(request, id, private_data) : status;
  }
  absl::Status Reject(RequestId request, ConstBytes private_data) final {
    return rendezvous_.Reject(request, private_data);
  }
  absl::Status Disconnect(QueuePairId id, bool orderly) final {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->Disconnect(orderly);
  }

  int fd() const final { return shared_.poller.descriptor(); }
  bool HasUnpolled() const override {
    return shared_.outbox.HasCompletions() || shared_.outbox.HasEvents();
  }

 protected:
  template <typename Options>
  explicit FabricFrame(const Options& options) : shared_(options), rendezvous_(shared_, *this) {}

  QueuePair* Find(QueuePairId id) final {
    const auto* slot = queue_pairs_.Find(static_cast<uint64_t>(id));
    return slot == nullptr ? nullptr : slot->get();
  }
  // Whether it may connect, which it does once.
  absl::Status CheckUnused(QueuePairId id) {
    const QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return UnknownQueuePair();
    return queue_pair->IsUnused() ? absl::OkStatus() : QueuePairAlreadyUsed();
  }
  virtual void OnDestroyed(QueuePairId id) = 0;

  // From the outbox, as many as there is room for.
  size_t Take(absl::Span<Completion> completions) {
    size_t count = 0;
    while (count < completions.size() && shared_.outbox.HasCompletions()) {
      const Completion& taken = completions[count++] = shared_.outbox.TakeCompletion();
      if (QueuePair* queue_pair = Find(taken.queue_pair)) queue_pair->OnPolled(taken);
    }
    return count;
  }

  Shared shared_;
  HandleTable<std::unique_ptr<QueuePair>> queue_pairs_;
  Rendezvous rendezvous_;
};

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_FABRIC_FRAME_H_
