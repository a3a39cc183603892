#include "impl/fabric/local/local_fabric.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "impl/base/handle_table.h"
#include "impl/base/secure_random.h"
#include "impl/base/status.h"
#include "impl/fabric/local/fabric_shared.h"
#include "impl/fabric/local/hot_list.h"
#include "impl/fabric/local/queue_pair.h"
#include "impl/fabric/local/rendezvous.h"

namespace esdp::fabric::local {
namespace {

using soft::Readiness;
using soft::Watched;

// A caller that spins looks at its queue pairs in every poll, and at descriptors in so many.
constexpr uint32_t kIdlePollsPerLook = 16;
constexpr uint32_t kIdlePollsBeforeLook = 8;
constexpr uint32_t kBusyPollsPerLook = 64;
// One that is looked at in vain so often is put to sleep; the only one later, since a spinning
// caller has nothing else to look at.
constexpr uint32_t kIdleMax = 256;
constexpr uint32_t kIdleMaxAlone = 16384;
constexpr uint32_t kIdleMaxAsleep = 16;

constexpr Limits kLimits{
    .region_bytes_max = soft::RegionTable::kRegionBytesMax,
    .message_bytes_max = kMessageBytesMax,
    .send_work_max = kWorkMax,
    .receive_work_max = kWorkMax,
    .scatter_gather_max = kScatterGatherMax,
    .read_scatter_gather_max = kScatterGatherMax,
    .reads_in_flight_max = kReadsInFlightMax,
    .private_data_max = kPrivateDataMax,
    .answer_data_max = kPrivateDataMax,
    .windows = true,
    .remote_invalidate = true,
    .initiator_speaks_first = false,
    .virtual_time = false,
};

absl::Status UnknownQueuePair() {
  return absl::NotFoundError("no such queue pair: it was never created here, or is destroyed");
}

absl::Status AlreadyUsed() {
  return absl::FailedPreconditionError("a queue pair connects once: create another");
}

class LocalFabric final : public Fabric, private QueuePairs {
 public:
  explicit LocalFabric(const LocalOptions& options)
      : shared_(options), rendezvous_(shared_, *this) {}

  absl::Status Open() {
    ESDP_RETURN_IF_ERROR(Channel::MakeBlock().status());  // can this system do it at all?
    shared_.reads_peers = shared_.options.reads_peers;
    Nonce nonce{};
    if (shared_.reads_peers && FillSecureRandom(std::as_writable_bytes(std::span(nonce)))) {
      shared_.nonce = nonce;
    }
    return shared_.poller.Open();
  }

  const char* name() const override { return "local"; }
  const Limits& limits() const override { return kLimits; }
  Time Now() const override { return shared_.clock->Now(); }

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access) override {
    return shared_.regions.Register(base, length, access);
  }
  absl::Status Deregister(RegionId region) override { return shared_.regions.Deregister(region); }
  absl::StatusOr<RemoteRange> RegionKey(RegionId region) override {
    return shared_.regions.RegionKey(region);
  }
  absl::StatusOr<RemoteRange> Bind(QueuePairId id, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override;
  absl::Status Unbind(QueuePairId id, uint32_t key) override;
  uint64_t Written(QueuePairId id, uint32_t key) const override {
    return shared_.regions.Written(id, key);
  }

  absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options) override;
  absl::Status DestroyQueuePair(QueuePairId id) override;
  absl::Status PostSend(QueuePairId id, absl::Span<const SendWork> batch) override;
  absl::Status PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) override;
  void ReleaseUnusedReceives(QueuePairId id) override {
    if (QueuePair* queue_pair = Find(id)) queue_pair->ReleaseUnusedReceives();
  }

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog) override {
    return rendezvous_.Listen(address, backlog);
  }
  absl::StatusOr<Address> ListenerAddress(ListenerId listener) const override {
    return rendezvous_.ListenerAddress(listener);
  }
  absl::Status StopListening(ListenerId listener) override {
    return rendezvous_.StopListening(listener);
  }
  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline) override;
  absl::Status Accept(RequestId request, QueuePairId id, ConstBytes private_data) override;
  absl::Status Reject(RequestId request, ConstBytes private_data) override {
    return rendezvous_.Reject(request, private_data);
  }
  absl::Status Disconnect(QueuePairId id, bool orderly) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->Disconnect(orderly);
  }

  size_t Poll(absl::Span<Completion> completions) override;
  bool PollRendezvous(RendezvousEvent& event) override;
  int fd() const override { return shared_.poller.descriptor(); }
  bool ExpectWaits(bool expected) override;
  Time NextDeadline() const override {
    return std::min(shared_.poller.NextDeadline(), rendezvous_.NextDeadline());
  }

 private:
  QueuePair* Find(QueuePairId id) override {
    const auto* slot = queue_pairs_.Find(static_cast<uint64_t>(id));
    return slot == nullptr ? nullptr : slot->get();
  }

  size_t Take(absl::Span<Completion> completions);
  bool Progress();
  bool ProgressHot();
  void SendToSleep();
  bool Look();
  void Dispatch(const Readiness& ready);
  void OnNoMemory(const Readiness& ready);
  void RunDeadlines();
  void StayAwake(QueuePairId id);
  void Signal();

  FabricShared shared_;
  HandleTable<std::unique_ptr<QueuePair>> queue_pairs_;
  Rendezvous rendezvous_;
  HotList hot_;
  bool waits_expected_ = true;
  bool awake_ = false;     // some queue pair has more to do, and nobody tells of it
  bool look_due_ = false;  // somebody was woken who was awake: it still has to be taken note of
  uint32_t idle_polls_ = 0;
  uint32_t busy_polls_ = 0;
};

absl::StatusOr<RemoteRange> LocalFabric::Bind(QueuePairId id, RegionId region, std::byte* address,
                                              uint64_t length, Access access) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsReady()) {
    return absl::FailedPreconditionError("a window is bound while the queue pair is ready");
  }
  absl::StatusOr<RemoteRange> range = shared_.regions.Bind(id, region, address, length, access);
  if (range.ok() && access.remote_read) queue_pair->Show(range->key, address, length);
  return range;
}

absl::Status LocalFabric::Unbind(QueuePairId id, uint32_t key) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (queue_pair->IsReady()) {
    return absl::FailedPreconditionError("the queue pair is connected: post kInvalidate instead");
  }
  if (shared_.regions.Invalidate(id, key) == soft::TagError::kNone) return absl::OkStatus();
  return absl::NotFoundError("the key is no live window of this queue pair");
}

absl::StatusOr<QueuePairId> LocalFabric::CreateQueuePair(const QueuePairOptions& options) {
  if (options.send_work > kWorkMax || options.receive_work > kWorkMax) {
    return absl::OutOfRangeError("more work than limits().send_work_max or receive_work_max");
  }
  QueuePairOptions fitted = options;
  fitted.initiator_depth = std::min(options.initiator_depth, kReadsInFlightMax);
  fitted.responder_resources = std::min(options.responder_resources, kReadsInFlightMax);
  const uint64_t handle = queue_pairs_.Insert(nullptr);
  if (handle == kNoHandle) return absl::ResourceExhaustedError("no more queue pairs");
  const QueuePairId id{handle};
  *queue_pairs_.Find(handle) = std::make_unique<QueuePair>(id, fitted, shared_);
  return id;
}

absl::Status LocalFabric::DestroyQueuePair(QueuePairId id) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  rendezvous_.GiveUp(id);
  queue_pair->Destroy();
  hot_.Forget(id);
  shared_.outbox.EraseEventsIf(
      [id](const RendezvousEvent& event) { return event.queue_pair == id; });
  queue_pairs_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::Status LocalFabric::PostSend(QueuePairId id, absl::Span<const SendWork> batch) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  ESDP_RETURN_IF_ERROR(queue_pair->PostSend(batch));
  if (queue_pair->IsPulling()) StayAwake(id);
  return absl::OkStatus();
}

absl::Status LocalFabric::PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  ESDP_RETURN_IF_ERROR(queue_pair->PostReceive(batch));
  if (queue_pair->WaitsForReceive() && !batch.empty()) StayAwake(id);
  return absl::OkStatus();
}

// There is something to do that nobody else tells of.
void LocalFabric::StayAwake(QueuePairId id) {
  hot_.Add(id);
  awake_ = true;
  Signal();
}

absl::Status LocalFabric::Connect(QueuePairId id, const Address& local, const Address& peer,
                                  ConstBytes private_data, Time deadline) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsUnused()) return AlreadyUsed();
  return rendezvous_.Connect(id, local, peer, private_data, deadline);
}

absl::Status LocalFabric::Accept(RequestId request, QueuePairId id, ConstBytes private_data) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsUnused()) return AlreadyUsed();
  return rendezvous_.Accept(request, id, private_data);
}

// --- progress ---

size_t LocalFabric::Poll(absl::Span<Completion> completions) {
  size_t count = Take(completions);
  bool moved = count != 0;
  if (count < completions.size() || completions.empty()) {
    moved = Progress() || moved;
    count += Take(completions.subspan(count));
  }
  // Who has found something is back soon: nobody need wake him until he finds nothing.
  awake_ = moved && !hot_.empty();
  if (!moved) SendToSleep();
  Signal();
  return count;
}

size_t LocalFabric::Take(absl::Span<Completion> completions) {
  size_t count = 0;
  while (count < completions.size() && shared_.outbox.HasCompletions()) {
    const Completion& taken = completions[count++] = shared_.outbox.TakeCompletion();
    if (QueuePair* queue_pair = Find(taken.queue_pair)) queue_pair->OnPolled(taken.opcode);
  }
  return count;
}

bool LocalFabric::PollRendezvous(RendezvousEvent& event) {
  if (!shared_.outbox.TakeEvent(event)) return false;
  if (event.type == RendezvousType::kEstablished) {
    if (QueuePair* queue_pair = Find(event.queue_pair)) {
      queue_pair->OnAnnounced();
      StayAwake(event.queue_pair);
    }
  }
  Signal();
  return true;
}

bool LocalFabric::ExpectWaits(bool expected) {
  const bool was_silent = expected && !waits_expected_;
  waits_expected_ = expected;
  return was_silent;
}

// Blocks are looked at without a system call. Descriptors tell of what is new, of those that were
// asleep, and of ends.
bool LocalFabric::Progress() {
  bool moved = ProgressHot();
  idle_polls_ = moved ? 0 : idle_polls_ + 1;
  busy_polls_ = moved ? busy_polls_ + 1 : 0;
  const bool look = hot_.empty() || (!moved && (waits_expected_ || look_due_)) ||
                    idle_polls_ % kIdlePollsPerLook == kIdlePollsBeforeLook ||
                    busy_polls_ >= kBusyPollsPerLook;
  if (look && Look()) moved = true;
  return moved;
}

bool LocalFabric::ProgressHot() {
  bool moved = false;
  hot_.Visit([&](QueuePairId id) {
    QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return false;
    const bool was_asleep = queue_pair->IsAsleep();
    bool busy = true;
    try {
      busy = queue_pair->Progress();
    } catch (const std::bad_alloc&) {
      queue_pair->OnNoMemory();
    }
    look_due_ = look_due_ || (busy && was_asleep);
    moved = moved || busy;
    return busy;
  });
  return moved;
}

// Each is told of from now on, or has more to do. While nobody waits they stay awake for a while.
void LocalFabric::SendToSleep() {
  const uint32_t most = waits_expected_ ? 0 : hot_.size() == 1 ? kIdleMaxAlone : kIdleMax;
  awake_ = false;
  hot_.ForgetIf([&](QueuePairId id, uint32_t idle) {
    QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return true;
    const bool asleep = idle >= most && queue_pair->Sleep();
    awake_ = awake_ || !asleep;
    return asleep && idle > kIdleMaxAsleep;
  });
}

bool LocalFabric::Look() {
  std::array<Readiness, 64> ready;
  look_due_ = false;
  busy_polls_ = 0;
  const size_t count = shared_.poller.Ready(absl::MakeSpan(ready));
  for (size_t i = 0; i < count; ++i) {
    try {
      Dispatch(ready[i]);
    } catch (const std::bad_alloc&) {
      OnNoMemory(ready[i]);
    }
  }
  RunDeadlines();
  return count != 0 && ProgressHot();
}

// It costs whoever it was done for, and no other.
void LocalFabric::OnNoMemory(const Readiness& ready) {
  if (ready.kind == Watched::kRequest) rendezvous_.OnRequestDeadline(ready.owner);
  if (ready.kind == Watched::kInitiator) rendezvous_.OnNoMemory(ready.owner);
}

void LocalFabric::Dispatch(const Readiness& ready) {
  switch (ready.kind) {
    case Watched::kQueuePair:
    case Watched::kProcess:
      if (QueuePair* queue_pair = Find(QueuePairId{ready.owner})) {
        hot_.Add(QueuePairId{ready.owner});
        if (ready.kind == Watched::kProcess) queue_pair->OnProcessDied();
        if (ready.kind == Watched::kQueuePair) queue_pair->OnSocketReady();
      }
      break;
    case Watched::kListener:
      (void)rendezvous_.OnListenerReady(ready.owner);
      break;
    case Watched::kRequest:
      rendezvous_.OnRequestReady(ready.owner);
      break;
    case Watched::kInitiator:
      rendezvous_.OnInitiatorReady(ready.owner);
      break;
    case Watched::kLingering:  // none here
      break;
  }
}

void LocalFabric::RunDeadlines() {
  if (NextDeadline() == kTimeInfinite) return;
  const Time now = Now();
  rendezvous_.RunDeadlines(now);
  Readiness due;
  while (shared_.poller.NextDue(now, due)) {
    if (due.kind == Watched::kListener) rendezvous_.OnListenerDeadline(due.owner);
    if (due.kind == Watched::kRequest) rendezvous_.OnRequestDeadline(due.owner);
    if (due.kind != Watched::kQueuePair) continue;
    if (QueuePair* queue_pair = Find(QueuePairId{due.owner})) queue_pair->OnDeadline();
  }
}

void LocalFabric::Signal() {
  shared_.poller.Signal(shared_.outbox.HasCompletions() || shared_.outbox.HasEvents() ||
                        (waits_expected_ && awake_));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeLocalFabric(const LocalOptions& options) {
  auto fabric = std::make_unique<LocalFabric>(options);
  ESDP_RETURN_IF_ERROR(fabric->Open());
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace esdp::fabric::local
