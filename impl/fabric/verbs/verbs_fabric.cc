#include "impl/fabric/verbs/verbs_fabric.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "impl/base/handle_table.h"
#include "impl/base/status.h"
#include "impl/fabric/verbs/arrivals.h"
#include "impl/fabric/verbs/commons.h"
#include "impl/fabric/verbs/link_watch.h"
#include "impl/fabric/verbs/manager.h"
#include "impl/fabric/verbs/queue_pair.h"
#include "impl/fabric/verbs/rendezvous.h"

namespace esdp::fabric::verbs {
namespace {

constexpr size_t kCompletionsAtOnce = 32;
// Who spins asks often, and each look is a system call.
constexpr uint32_t kIdlePollsForALook = 8;
constexpr uint32_t kIdlePollsWithoutWaits = 64;
constexpr uint8_t kEveryPort = 0;  // ports count from 1

absl::Status UnknownQueuePair() {
  return absl::NotFoundError("no such queue pair: it was never created here, or is destroyed");
}

class VerbsFabric final : public Fabric, private QueuePairs {
 public:
  VerbsFabric(std::unique_ptr<Device> device, std::shared_ptr<Manager> manager, Profile profile,
              const Clock* clock)
      : commons_(std::move(device), clock),
        manager_(std::move(manager)),
        rendezvous_(commons_, *this, manager_, profile) {}
  ~VerbsFabric() override;

  absl::Status Open();

  const char* name() const override { return "verbs"; }
  const Limits& limits() const override { return commons_.device->limits(); }
  Time Now() const override { return commons_.clock->Now(); }

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access) override {
    return commons_.regions.Register(base, length, access);
  }
  absl::StatusOr<RegionId> RegisterDmaBuf(const DmaBuf& buffer, std::byte* base, uint64_t length,
                                          Access access) override {
    return commons_.regions.RegisterDmaBuf(buffer, base, length, access);
  }
  absl::Status Deregister(RegionId region) override { return commons_.regions.Deregister(region); }
  absl::StatusOr<RemoteRange> RegionKey(RegionId region) override {
    return commons_.regions.RegionKey(region);
  }
  absl::StatusOr<RemoteRange> Bind(QueuePairId id, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override;
  absl::Status Unbind(QueuePairId id, uint32_t key) override;

  absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options) override;
  absl::Status DestroyQueuePair(QueuePairId id) override;
  absl::Status PostSend(QueuePairId id, absl::Span<const SendWork> batch) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->PostSend(batch);
  }
  absl::Status PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->PostReceive(batch);
  }

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog) override {
    return rendezvous_.Listen(address, backlog);
  }
  absl::StatusOr<Address> ListenerAddress(ListenerId listener) const override {
    return rendezvous_.ListenerAddress(listener);
  }
  absl::Status StopListening(ListenerId listener) override {
    Look();  // so that requests which have come are rejected, and not just broken off
    return rendezvous_.StopListening(listener);
  }
  absl::StatusOr<Address> ReserveAddress(QueuePairId id, const Address& local,
                                         const Address& peer) override;
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
  int fd() const override { return arrivals_.fd(); }
  bool ExpectWaits(bool expected) override;
  // Of a device that is not to tell nobody knows.
  bool HasUnpolled() const override {
    return commons_.outbox.HasCompletions() || commons_.outbox.HasEvents() ||
           !commons_.completion_queues.armed();
  }
  Time NextDeadline() const override;

 private:
  QueuePair* Find(QueuePairId id) override {
    const auto* slot = queue_pairs_.Find(static_cast<uint64_t>(id));
    return slot == nullptr ? nullptr : slot->get();
  }
  void OnAdopted(QueuePair& queue_pair, QueuePairId id) override {
    by_number_[queue_pair.number()] = id;
    recent_ = nullptr;
  }
  QueuePair* OwnerOf(uint32_t number);
  absl::Status CheckUnused(QueuePairId id);

  size_t Take(absl::Span<Completion> completions);
  void Progress();
  bool PollDevice();
  void LookAtDevice();
  void OnDeviceEvent(ibv_event_type type, uint8_t port);
  void EndAll(uint8_t port, Cause cause, const char* detail);
  void Look();
  void RunDeadlines();
  void HearTheDevice() override;
  void Signal() override;

  FabricShared commons_;
  const std::shared_ptr<Manager> manager_;
  HandleTable<std::unique_ptr<QueuePair>> queue_pairs_;
  absl::flat_hash_map<uint32_t, QueuePairId> by_number_;
  QueuePair* recent_ = nullptr;  // the last owner found: completions come in runs
  Rendezvous rendezvous_;
  LinkWatch links_;
  Arrivals arrivals_;
  bool waits_expected_ = true;
  uint32_t idle_polls_ = 0;
};

absl::Status VerbsFabric::Open() {
  ESDP_RETURN_IF_ERROR(commons_.completion_queues.Open());
  ESDP_RETURN_IF_ERROR(manager_->Open());
  ESDP_RETURN_IF_ERROR(commons_.device_events.Open(*commons_.device));
  return arrivals_.Open({commons_.completion_queues.fd(), manager_->fd(),
                         commons_.device->context()->async_fd, commons_.device_events.fd()});
}

VerbsFabric::~VerbsFabric() {
  queue_pairs_.ForEach([&](uint64_t, std::unique_ptr<QueuePair>& each) { each.reset(); });
}

absl::StatusOr<RemoteRange> VerbsFabric::Bind(QueuePairId id, RegionId region, std::byte* address,
                                              uint64_t length, Access access) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  return queue_pair->Bind(region, address, length, access);
}

absl::Status VerbsFabric::Unbind(QueuePairId id, uint32_t key) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (queue_pair->IsConnected()) {
    return absl::FailedPreconditionError("the queue pair is connected: post kInvalidate instead");
  }
  if (commons_.regions.Drop(id, key)) return absl::OkStatus();
  return absl::NotFoundError("the key is no live window of this queue pair");
}

absl::StatusOr<QueuePairId> VerbsFabric::CreateQueuePair(const QueuePairOptions& options) {
  if (options.send_work > limits().send_work_max ||
      options.receive_work > limits().receive_work_max) {
    return absl::OutOfRangeError("more work than limits().send_work_max or receive_work_max");
  }
  QueuePairOptions fitted = options;
  fitted.initiator_depth = std::min(options.initiator_depth, limits().reads_in_flight_max);
  fitted.responder_resources = std::min(options.responder_resources, limits().reads_in_flight_max);
  const uint64_t handle = queue_pairs_.Insert(nullptr);
  if (handle == kNoHandle) return absl::ResourceExhaustedError("no more queue pairs");
  const QueuePairId id{handle};
  *queue_pairs_.Find(handle) = std::make_unique<QueuePair>(id, fitted, commons_);
  return id;
}

absl::Status VerbsFabric::DestroyQueuePair(QueuePairId id) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  const uint32_t number = queue_pair->number();
  rendezvous_.GiveUp(id);
  while (PollDevice()) {
  }
  by_number_.erase(number);
  recent_ = nullptr;
  queue_pair->Destroy();
  commons_.outbox.EraseEventsIf(
      [id](const RendezvousEvent& event) { return event.queue_pair == id; });
  queue_pairs_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::Status VerbsFabric::CheckUnused(QueuePairId id) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (queue_pair->IsUnused()) return absl::OkStatus();
  return absl::FailedPreconditionError("a queue pair connects once: create another");
}

absl::StatusOr<Address> VerbsFabric::ReserveAddress(QueuePairId id, const Address& local,
                                                    const Address& peer) {
  ESDP_RETURN_IF_ERROR(CheckUnused(id));
  return rendezvous_.Reserve(id, local, peer);
}

absl::Status VerbsFabric::Connect(QueuePairId id, const Address& local, const Address& peer,
                                  ConstBytes private_data, Time deadline) {
  ESDP_RETURN_IF_ERROR(CheckUnused(id));
  return rendezvous_.Connect(id, local, peer, private_data, deadline);
}

absl::Status VerbsFabric::Accept(RequestId request, QueuePairId id, ConstBytes private_data) {
  ESDP_RETURN_IF_ERROR(CheckUnused(id));
  return rendezvous_.Accept(request, id, private_data);
}

// --- progress ---

size_t VerbsFabric::Poll(absl::Span<Completion> completions) {
  size_t count = Take(completions);
  if (count < completions.size()) {
    Progress();
    count += Take(completions.subspan(count));
  }
  Signal();
  return count;
}

size_t VerbsFabric::Take(absl::Span<Completion> completions) {
  size_t count = 0;
  while (count < completions.size() && commons_.outbox.HasCompletions()) {
    const Completion& taken = completions[count++] = commons_.outbox.TakeCompletion();
    if (QueuePair* queue_pair = Find(taken.queue_pair)) queue_pair->OnPolled(taken.opcode);
  }
  return count;
}

bool VerbsFabric::PollRendezvous(RendezvousEvent& event) {
  if (!commons_.outbox.TakeEvent(event)) return false;
  if (event.type == RendezvousType::kEstablished) {
    if (QueuePair* queue_pair = Find(event.queue_pair)) queue_pair->OnAnnounced();
  }
  Signal();
  return true;
}

bool VerbsFabric::PollDevice() {
  std::array<ibv_wc, kCompletionsAtOnce> found;
  const size_t count = commons_.completion_queues.Poll(absl::MakeSpan(found));
  for (size_t i = 0; i < count; ++i) {
    if (QueuePair* owner = OwnerOf(found[i].qp_num)) owner->OnCompletion(found[i]);
  }
  return count == found.size();
}

QueuePair* VerbsFabric::OwnerOf(uint32_t number) {
  if (recent_ != nullptr && recent_->number() == number) return recent_;
  const auto owner = by_number_.find(number);
  return owner == by_number_.end() ? nullptr : recent_ = Find(owner->second);
}

void VerbsFabric::Progress() {
  (void)PollDevice();
  if (commons_.outbox.HasCompletions()) {
    idle_polls_ = 0;
  } else {
    const uint32_t polls = waits_expected_ ? kIdlePollsForALook : kIdlePollsWithoutWaits;
    if (idle_polls_++ % polls == 0) Look();
    // What came between the last poll and the wish to be told of arrivals tells nobody.
    if (waits_expected_ && !commons_.completion_queues.armed()) {
      commons_.completion_queues.Arm();
      (void)PollDevice();
    }
  }
  RunDeadlines();
}

bool VerbsFabric::ExpectWaits(bool expected) {
  const bool was_silent = expected && !waits_expected_;
  waits_expected_ = expected;
  if (was_silent) idle_polls_ = 0;  // so that the next poll looks
  return was_silent;
}

// What the device tells besides completions.
void VerbsFabric::LookAtDevice() {
  DeviceEvents::Event event;
  while (commons_.device_events.Take(event)) {
    if (!event.of_queue_pair) {
      OnDeviceEvent(event.type, event.port);
      continue;
    }
    // What has completed says more than that the queue pair has failed.
    while (PollDevice()) {
    }
    if (QueuePair* owner = OwnerOf(event.queue_pair)) owner->OnAsynchronous(event.type);
  }
}

// Events of a port and of the device itself.
void VerbsFabric::OnDeviceEvent(ibv_event_type type, uint8_t port) {
  if (type == IBV_EVENT_PORT_ERR) links_.OnDown(port, Now());
  if (type == IBV_EVENT_PORT_ACTIVE) links_.OnUp(port);
  if (type == IBV_EVENT_DEVICE_FATAL) {
    EndAll(kEveryPort, Cause::kDevice, ibv_event_type_str(type));
  }
}

void VerbsFabric::EndAll(uint8_t port, Cause cause, const char* detail) {
  queue_pairs_.ForEach([&](uint64_t, std::unique_ptr<QueuePair>& each) {
    if (port == kEveryPort || each->port() == port) each->OnPortLost(cause, detail);
  });
}

// The device's own word on a queue pair comes before the manager's, which only knows that it is
// over.
void VerbsFabric::Look() {
  const Arrivals::Ready ready = arrivals_.Look();
  if (ready.Has(Arrivals::kCompletions)) commons_.completion_queues.TakeNotice();
  const bool device = ready.Has(Arrivals::kDevice) || ready.Has(Arrivals::kDeviceEvents);
  if (!device && !ready.Has(Arrivals::kManager)) return;
  HearTheDevice();
  while (manager_->TakeEvent()) {
  }
}

void VerbsFabric::HearTheDevice() {
  LookAtDevice();
  while (PollDevice()) {
  }
}

Time VerbsFabric::NextDeadline() const {
  const Time flush = commons_.flushes.empty() ? kTimeInfinite : commons_.flushes.front().deadline;
  return std::min({rendezvous_.next_deadline(), flush, links_.next_deadline()});
}

void VerbsFabric::RunDeadlines() {
  if (NextDeadline() == kTimeInfinite) return;
  const Time now = Now();
  rendezvous_.OnDeadlines(now);
  for (uint8_t port = links_.TakeLost(now); port != 0; port = links_.TakeLost(now)) {
    EndAll(port, Cause::kPeerReset, "the link of the RDMA device's port has been down for 10 s");
  }
  while (!commons_.flushes.empty() && commons_.flushes.front().deadline <= now) {
    QueuePair* const queue_pair = Find(commons_.flushes.TakeFront().queue_pair);
    if (queue_pair != nullptr && queue_pair->flush_deadline() <= now) queue_pair->OnFlushDeadline();
  }
}

void VerbsFabric::Signal() {
  arrivals_.Signal(commons_.outbox.HasCompletions() || commons_.outbox.HasEvents());
}

}  // namespace

std::shared_ptr<Manager> MakeManager(const Calls& calls) {
  return std::make_shared<Manager>(calls);
}

absl::StatusOr<std::unique_ptr<Fabric>> MakeVerbsFabric(const VerbsOptions& options) {
  const Calls& calls = options.calls == nullptr ? LibraryCalls() : *options.calls;
  ESDP_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Device::Open(calls, options.device));
  if (options.profile == Profile::kInfiniBand && device->is_iwarp()) {
    return absl::InvalidArgumentError("iWARP has no port space of InfiniBand");
  }
  if (options.profile == Profile::kNative) ESDP_RETURN_IF_ERROR(device->UseNativeRequests());
  auto fabric = std::make_unique<VerbsFabric>(
      std::move(device), options.manager == nullptr ? MakeManager(calls) : options.manager,
      options.profile, options.clock);
  ESDP_RETURN_IF_ERROR(fabric->Open());
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace esdp::fabric::verbs
