#include "impl/fabric/sim/sim_fabric.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "impl/fabric/sim/lent_messages.h"
#include "impl/fabric/sim/outbox.h"
#include "impl/fabric/sim/rendezvous.h"
#include "impl/fabric/sim/sim_queue_pair.h"
#include "impl/fabric/sim/world_keys.h"
#include "impl/fabric/soft/region_table.h"

namespace esdp::fabric::sim {
namespace {

absl::Status NoQueuePair() { return absl::NotFoundError("no queue pair has this handle"); }

class SimFabric : public Fabric, public Inhabitant {
 public:
  SimFabric(std::shared_ptr<World> world, const Limits& limits, std::shared_ptr<HostModel> host);
  ~SimFabric() override;

  bool ok() const { return outbox_.ok(); }

  const char* name() const override { return "sim"; }
  const Limits& limits() const override { return limits_; }
  Time Now() const override { return world_->Now(); }

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access) override;
  absl::Status Deregister(RegionId region) override;
  absl::StatusOr<RemoteRange> RegionKey(RegionId region) override {
    const std::lock_guard held(*world_);
    return regions_.RegionKey(region);
  }
  absl::StatusOr<RemoteRange> Bind(QueuePairId queue_pair, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override;
  absl::Status Unbind(QueuePairId queue_pair, uint32_t key) override;
  uint64_t Written(QueuePairId queue_pair, uint32_t key) const override;

  absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options) override;
  absl::Status DestroyQueuePair(QueuePairId queue_pair) override;
  absl::Status PostSend(QueuePairId queue_pair, absl::Span<const SendWork> batch) override;
  absl::Status PostReceive(QueuePairId queue_pair, absl::Span<const ReceiveWork> batch) override;

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog) override;
  absl::StatusOr<Address> ListenerAddress(ListenerId listener) const override {
    const std::lock_guard held(*world_);
    return rendezvous_->AddressOf(listener);
  }
  absl::Status StopListening(ListenerId listener) override {
    const std::lock_guard held(*world_);
    return rendezvous_->Stop(listener);
  }
  absl::Status Connect(QueuePairId queue_pair, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline) override;
  absl::Status Accept(RequestId request, QueuePairId queue_pair, ConstBytes private_data) override;
  absl::Status Reject(RequestId request, ConstBytes private_data) override;
  absl::Status Disconnect(QueuePairId queue_pair, bool orderly) override;

  size_t Poll(absl::Span<Completion> completions) override;
  void ReturnLent(QueuePairId queue_pair) override {
    const std::lock_guard held(*world_);
    lent_messages_.Return(queue_pair);
  }
  bool PollRendezvous(RendezvousEvent& event) override {
    const std::lock_guard held(*world_);
    return outbox_.TakeEvent(event);
  }
  int fd() const override { return outbox_.fd(); }
  bool HasUnpolled() const override {
    const std::lock_guard held(*world_);
    return HasSomethingToPoll();
  }
  bool Advance(Time deadline) override { return world_->Step(deadline); }
  void SetDoorbell(std::function<void()> doorbell) override {
    const std::lock_guard held(*world_);
    doorbell_ = std::move(doorbell);
  }
  void WakeAt(Time time) override;

  bool HasSomethingToPoll() const override { return awake_ || outbox_.HasSomething(); }
  void RingDoorbell() override {
    if (host_ == nullptr) return Ring();
    host_->OnSomethingToPoll(outbox_.sends(), awake_ || outbox_.HasMoreThanSends());
  }
  void Vanish(bool told) override {
    rendezvous_->StopAll();
    for (const auto& [id, queue_pair] : queue_pairs_) queue_pair->Vanish(told);
  }
  Inventory Count() const override {
    return {queue_pairs_.size(), rendezvous_->listeners(), regions_.regions(), regions_.windows()};
  }

 private:
  void Ring() {
    if (doorbell_) doorbell_();
  }
  // Null when there is none.
  SimQueuePair* Find(QueuePairId queue_pair) const;
  absl::Status CheckPrivateData(ConstBytes private_data) const;
  absl::Status CheckMemory(uint64_t length);
  Address HostAddress(Family family) const;

  std::shared_ptr<World> world_;
  std::shared_ptr<HostModel> host_;  // null where nothing takes time
  Limits limits_;
  uint64_t number_;
  Outbox outbox_;
  LentMessages lent_messages_;
  soft::RegionTable regions_;
  Surroundings around_;
  std::shared_ptr<Rendezvous> rendezvous_;
  uint64_t last_queue_pair_ = 0;
  std::map<QueuePairId, std::shared_ptr<SimQueuePair>> queue_pairs_;
  std::function<void()> doorbell_;
  std::optional<World::EventKey> wake_;  // what WakeAt has asked for
  bool awake_ = false;                   // its time has come, and nobody has polled since
};

SimFabric::SimFabric(std::shared_ptr<World> world, const Limits& limits,
                     std::shared_ptr<HostModel> host)
    : world_(std::move(world)),
      host_(std::move(host)),
      limits_(limits),
      number_(world_->NextNumber()),
      regions_(std::make_unique<WorldKeys>(world_->random())),
      around_{*world_, regions_, outbox_, lent_messages_, limits_, host_.get()},
      rendezvous_(std::make_shared<Rendezvous>(around_)) {
  limits_.virtual_time = true;
  world_->Join(number_, this);
  if (host_ != nullptr) host_->SetPoll([this] { Ring(); });
}

SimFabric::~SimFabric() {
  const std::lock_guard held(*world_);
  WakeAt(kTimeInfinite);
  if (host_ != nullptr) host_->SetPoll(nullptr);
  world_->Leave(number_);
  rendezvous_->StopAll();
  for (const auto& [id, queue_pair] : queue_pairs_) queue_pair->Destroy();
  queue_pairs_.clear();
  rendezvous_.reset();
}

absl::StatusOr<RegionId> SimFabric::Register(std::byte* base, uint64_t length, Access access) {
  const std::lock_guard held(*world_);
  if (length > limits_.region_bytes_max) {
    return absl::OutOfRangeError("longer than region_bytes_max: register it in pieces");
  }
  if (absl::Status status = CheckMemory(length); !status.ok()) return status;
  if (host_ != nullptr) host_->OnRegister(length);
  return regions_.Register(base, length, access);
}

absl::Status SimFabric::Deregister(RegionId region) {
  const std::lock_guard held(*world_);
  const uint64_t before = regions_.registered_bytes();
  absl::Status status = regions_.Deregister(region);
  if (host_ != nullptr && status.ok()) host_->OnDeregister(before - regions_.registered_bytes());
  return status;
}

absl::StatusOr<RemoteRange> SimFabric::Bind(QueuePairId queue_pair, RegionId region,
                                            std::byte* address, uint64_t length, Access access) {
  const std::lock_guard held(*world_);
  if (!limits_.windows) return absl::UnimplementedError("this fabric has no windows");
  const SimQueuePair* found = Find(queue_pair);
  if (found == nullptr) return NoQueuePair();
  if (!found->ready()) return absl::FailedPreconditionError("the queue pair is not connected");
  if (world_->Strikes(FaultKind::kNoWindow, world_->faults().no_window, number_)) {
    return absl::ResourceExhaustedError("the simulated device has no window left");
  }
  return regions_.Bind(queue_pair, region, address, length, access);
}

uint64_t SimFabric::Written(QueuePairId queue_pair, uint32_t key) const {
  const std::lock_guard held(*world_);
  return regions_.Written(queue_pair, key);
}

absl::Status SimFabric::Unbind(QueuePairId queue_pair, uint32_t key) {
  const std::lock_guard held(*world_);
  if (!limits_.windows) return absl::UnimplementedError("this fabric has no windows");
  const SimQueuePair* found = Find(queue_pair);
  if (found == nullptr) return NoQueuePair();
  if (!found->ended()) {
    return absl::FailedPreconditionError("the queue pair is connected: post a kInvalidate");
  }
  if (regions_.Invalidate(queue_pair, key) != soft::TagError::kNone) {
    return absl::NotFoundError("the key is no live window of this queue pair");
  }
  return absl::OkStatus();
}

absl::StatusOr<QueuePairId> SimFabric::CreateQueuePair(const QueuePairOptions& options) {
  const std::lock_guard held(*world_);
  if (options.send_work > limits_.send_work_max ||
      options.receive_work > limits_.receive_work_max) {
    return absl::OutOfRangeError("more work per queue pair than the fabric's limit");
  }
  if (world_->Strikes(FaultKind::kNoQueuePair, world_->faults().no_queue_pair, number_)) {
    return absl::ResourceExhaustedError("the simulated device has no queue pair left");
  }
  const QueuePairId id{++last_queue_pair_};
  queue_pairs_[id] = std::make_shared<SimQueuePair>(around_, id, options);
  return id;
}

absl::Status SimFabric::DestroyQueuePair(QueuePairId queue_pair) {
  const std::lock_guard held(*world_);
  const auto node = queue_pairs_.extract(queue_pair);
  if (node.empty()) return NoQueuePair();
  node.mapped()->Destroy();
  return absl::OkStatus();
}

absl::Status SimFabric::PostSend(QueuePairId queue_pair, absl::Span<const SendWork> batch) {
  const std::lock_guard held(*world_);
  SimQueuePair* found = Find(queue_pair);
  return found == nullptr ? NoQueuePair() : found->PostSend(batch);
}

absl::Status SimFabric::PostReceive(QueuePairId queue_pair, absl::Span<const ReceiveWork> batch) {
  const std::lock_guard held(*world_);
  SimQueuePair* found = Find(queue_pair);
  return found == nullptr ? NoQueuePair() : found->PostReceive(batch);
}

absl::StatusOr<ListenerId> SimFabric::Listen(const Address& address, int backlog) {
  const std::lock_guard held(*world_);
  static_cast<void>(backlog);  // requests cost the simulation nothing
  return rendezvous_->Listen(address);
}

absl::Status SimFabric::Connect(QueuePairId queue_pair, const Address& local, const Address& peer,
                                ConstBytes private_data, Time deadline) {
  const std::lock_guard held(*world_);
  SimQueuePair* found = Find(queue_pair);
  if (found == nullptr) return NoQueuePair();
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  if (!found->idle()) {
    return absl::FailedPreconditionError("a queue pair connects once: create another one");
  }
  auto handshake = std::make_shared<Handshake>();
  handshake->initiator_address =
      IsWildcard(local) || local.family != peer.family ? HostAddress(peer.family) : local;
  handshake->initiator_address.port = local.port != 0 ? local.port : world_->addresses().NextPort();
  handshake->listener_address = peer;
  handshake->private_data.assign(private_data.begin(), private_data.end());
  found->Connect(handshake, deadline);
  return absl::OkStatus();
}

absl::Status SimFabric::Accept(RequestId request, QueuePairId queue_pair, ConstBytes private_data) {
  const std::lock_guard held(*world_);
  if (!rendezvous_->HasRequest(request)) return rendezvous_->TakeRequest(request).status();
  SimQueuePair* found = Find(queue_pair);
  if (found == nullptr) return NoQueuePair();
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  if (!found->idle()) {
    return absl::FailedPreconditionError("a queue pair connects once: create another one");
  }
  found->Accept(*rendezvous_->TakeRequest(request), private_data);
  return absl::OkStatus();
}

absl::Status SimFabric::Reject(RequestId request, ConstBytes private_data) {
  const std::lock_guard held(*world_);
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Handshake>> handshake = rendezvous_->TakeRequest(request);
  if (!handshake.ok()) return handshake.status();
  rendezvous_->Reject(**handshake, private_data);
  return absl::OkStatus();
}

absl::Status SimFabric::Disconnect(QueuePairId queue_pair, bool orderly) {
  const std::lock_guard held(*world_);
  SimQueuePair* found = Find(queue_pair);
  return found == nullptr ? NoQueuePair() : found->Disconnect(orderly);
}

void SimFabric::WakeAt(Time time) {
  const std::lock_guard held(*world_);
  if (wake_) world_->Cancel(*wake_);
  wake_.reset();
  if (time == kTimeInfinite) return;
  wake_ = world_->Schedule(time, [this] {
    wake_.reset();
    awake_ = true;
  });
}

size_t SimFabric::Poll(absl::Span<Completion> completions) {
  const std::lock_guard held(*world_);
  awake_ = false;
  lent_messages_.ReturnAll();
  if (host_ != nullptr)
    completions = completions.first(std::min(completions.size(), host_->PollLimit()));
  const size_t count = outbox_.TakeCompletions(completions);
  for (const Completion& completion : completions.first(count)) {
    if (host_ != nullptr) host_->OnPolled(completion.opcode);
    lent_messages_.OnPolled(completion);
    if (SimQueuePair* found = Find(completion.queue_pair)) found->OnPolled(completion.opcode);
  }
  return count;
}

SimQueuePair* SimFabric::Find(QueuePairId queue_pair) const {
  const auto found = queue_pairs_.find(queue_pair);
  return found == queue_pairs_.end() ? nullptr : found->second.get();
}

absl::Status SimFabric::CheckPrivateData(ConstBytes private_data) const {
  if (private_data.size() <= limits_.private_data_max) return absl::OkStatus();
  return absl::OutOfRangeError("more private data than private_data_max");
}

absl::Status SimFabric::CheckMemory(uint64_t length) {
  const Faults& faults = world_->faults();
  if (world_->Strikes(FaultKind::kNoRegion, faults.no_region, number_)) {
    return absl::ResourceExhaustedError("the simulated device has no memory key left");
  }
  const uint64_t most = faults.registered_bytes_max;
  const uint64_t used = regions_.registered_bytes();
  if (most == 0 || (used <= most && length <= most - used)) return absl::OkStatus();
  world_->NoteFault(FaultKind::kMemoryLimit, number_);
  return absl::ResourceExhaustedError("more memory than the simulated limit of " +
                                      std::to_string(most) + " bytes, of which " +
                                      std::to_string(used) + " are registered");
}

Address SimFabric::HostAddress(Family family) const {
  Address address{.family = family};
  address.bytes[0] = family == Family::kIpv6 ? 0xfd : 0;
  if (family == Family::kIpv4) address.bytes[12] = 10;
  address.bytes[13] = static_cast<uint8_t>(number_ >> 16);
  address.bytes[14] = static_cast<uint8_t>(number_ >> 8);
  address.bytes[15] = static_cast<uint8_t>(number_);
  return address;
}

}  // namespace

Limits DefaultSimLimits() {
  Limits limits;
  limits.region_bytes_max = uint64_t{1} << 40;
  limits.message_bytes_max = uint64_t{1} << 30;
  limits.send_work_max = 4096;
  limits.receive_work_max = 4096;
  limits.scatter_gather_max = 16;
  limits.read_scatter_gather_max = 4;
  limits.reads_in_flight_max = 128;
  limits.private_data_max = limits.answer_data_max = 251;
  limits.windows = true;
  limits.remote_invalidate = true;
  limits.initiator_speaks_first = true;
  limits.lends_messages = true;
  limits.virtual_time = true;
  return limits;
}

absl::StatusOr<std::unique_ptr<Fabric>> MakeSimFabric(const std::shared_ptr<World>& world,
                                                      const Limits& limits,
                                                      std::shared_ptr<HostModel> host) {
  if (world == nullptr) return absl::InvalidArgumentError("a simulated fabric needs a world");
  if (limits.private_data_max > kPrivateDataMax) {
    return absl::InvalidArgumentError("private_data_max is beyond what an event can hold");
  }
  const std::lock_guard held(*world);
  auto fabric = std::make_unique<SimFabric>(world, limits, std::move(host));
  if (!fabric->ok()) return absl::ResourceExhaustedError("no descriptor for the fabric's fd()");
  return fabric;
}

}  // namespace esdp::fabric::sim
