#include "impl/provider/shard.h"

#include <chrono>
#include <utility>

#include "impl/base/clock.h"
#include "impl/provider/engine.h"
#include "impl/provider/progress/progress.h"
#include "impl/provider/regions.h"
#include "impl/provider/residue.h"

namespace esdp::provider {
namespace {

// How long the peers have to take note of the end of a shard, and how long each look lasts.
constexpr auto kWindDown = std::chrono::milliseconds(500);
constexpr auto kLook = std::chrono::milliseconds(5);
constexpr int kLastRounds = 64;

}  // namespace

class Shard::Impl {
 public:
  Impl(std::vector<std::unique_ptr<fabric::Fabric>> fabrics, Observer& observer,
       const ShardOptions& options)
      : engine(std::move(fabrics), observer, options.log, options.bounds, options.tap),
        progress(engine, observer, options) {}

  // What the observer is told meanwhile may make it ask the shard, which is whole until this returns.
  void End() {
    progress.Stop();
    progress.WithLock([&] { return WindDown(); });
    // Who moves the virtual world on from another Context is not to find us half gone.
    engine.fabric().SetDoorbell(nullptr);
  }

  Engine engine;
  ProgressLoop progress;

 private:
  bool WindDown() {
    const SystemClock clock;  // the fabric's own may be virtual, and stand still
    const Time end = clock.Now() + kWindDown;
    const bool waits = !engine.fabric().limits().virtual_time;
    engine.AbortAll();
    while (!engine.empty() && clock.Now() < end) {
      if (engine.Round()) continue;
      if (!waits) break;
      progress.Look(kLook);
    }
    engine.DestroyAll();
    for (int i = 0; i < kLastRounds && engine.Round(); ++i) {
    }
    return true;
  }
};

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(std::unique_ptr<fabric::Fabric> fabric,
                                                     Observer& observer,
                                                     const ShardOptions& options) {
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  if (fabric != nullptr) fabrics.push_back(std::move(fabric));
  return Create(std::move(fabrics), observer, options);
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics, Observer& observer,
    const ShardOptions& options) {
  if (fabrics.empty()) return absl::InvalidArgumentError("a shard needs a fabric");
  ShardOptions adapted = options;
  if (fabrics.front()->limits().virtual_time) adapted.progress = Progress::kManual;
  auto impl = std::make_unique<Impl>(std::move(fabrics), observer, adapted);
  if (impl->engine.fabric().limits().virtual_time) {
    impl->engine.fabric().SetDoorbell([progress = &impl->progress] { progress->Doorbell(); });
  }
  std::unique_ptr<Shard> shard(new Shard(std::move(impl)));
  const absl::Status started = shard->impl_->progress.Start();
  if (!started.ok()) return started;
  return shard;
}

Shard::Shard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// NOLINTNEXTLINE(bugprone-exception-escape): nobody is left to be told that memory is short.
Shard::~Shard() {
  const bool has_residue = impl_->progress.WithLock([&] { return impl_->engine.HasResidue(); });
  impl_->End();
  impl_.reset();
  if (has_residue) Residue::ReturnFreeMemory();
}

const char* Shard::fabric_name() const { return impl_->engine.fabric().name(); }
Time Shard::Now() const { return impl_->engine.fabric().Now(); }
bool Shard::virtual_time() const { return impl_->engine.fabric().limits().virtual_time; }

void Shard::Submit(const Request& request) { impl_->progress.Submit(request); }
void Shard::SubmitAll(std::span<const Request> transfers) { impl_->progress.SubmitAll(transfers); }
void Shard::ReserveOperations(size_t operations) {
  impl_->progress.WithLock(
      [&] {
        impl_->engine.ReserveOperations(operations);
        return true;
      },
      false);
}
bool Shard::TrySendImmediate(ConnectionId connection, ImmediateSend& send) {
  return impl_->progress.TrySendImmediate(connection, send);
}

absl::StatusOr<std::shared_ptr<MemoryRegion>> Shard::Register(std::span<std::byte> memory,
                                                              bool local_write, Exposure exposure,
                                                              int file) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.Register(memory, local_write, exposure, file); }, false);
}

bool Shard::SharesMemory() const { return impl_->engine.SharesMemory(); }

absl::StatusOr<std::shared_ptr<MemoryRegion>> Shard::RegisterDmaBuf(const fabric::DmaBuf& buffer,
                                                                    std::span<std::byte> addresses,
                                                                    Exposure exposure) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.RegisterDmaBuf(buffer, addresses, exposure); }, false);
}

absl::Status Shard::Deregister(MemoryRegion& region) {
  return impl_->progress.WithLock([&] { return impl_->engine.Deregister(region); }, false);
}

void Shard::NameUnregistered(std::shared_ptr<MemoryRegion>& region, std::span<std::byte> memory) {
  if (region == nullptr) region = MemoryRegion::Unregistered();
  region->Name(memory);
}

RegionDetails Shard::Describe(const MemoryRegion& region) {
  return {.base = region.reachable() ? region.base() : nullptr,
          .length = region.length(),
          .chunks = region.chunk_count(),
          .operations = region.operations(),
          .registration_time = region.registration_time()};
}

absl::StatusOr<ListenerId> Shard::Listen(const Address& address, int backlog,
                                         const ConnectionOptions& options,
                                         const std::function<void(ListenerId)>& named) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.rendezvous().Listen(address, backlog, options, named); });
}

absl::StatusOr<ListenerId> Shard::ListenOver(int descriptor, const ConnectionOptions& options,
                                             const std::function<void(ListenerId)>& named) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.rendezvous().ListenOver(descriptor, options, named); });
}

absl::StatusOr<Address> Shard::ListenerAddress(ListenerId listener) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.rendezvous().ListenerAddress(listener); }, false);
}

uint8_t Shard::FabricOf(ListenerId listener) {
  return impl_->progress.WithLock([&] { return impl_->engine.rendezvous().FabricOf(listener); },
                                  false);
}

absl::Status Shard::StopListening(ListenerId listener) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.rendezvous().StopListening(listener); });
}

absl::StatusOr<ConnectionId> Shard::Connect(const Address& local, const Address& peer,
                                            const ConnectionOptions& options, Time deadline,
                                            const std::function<void(ConnectionId)>& named) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.rendezvous().Connect(local, peer, options, deadline, named); });
}

absl::StatusOr<ConnectionId> Shard::ConnectOver(int descriptor, const ConnectionOptions& options,
                                                Time deadline,
                                                const std::function<void(ConnectionId)>& named) {
  return impl_->progress.WithLock(
      [&] { return impl_->engine.rendezvous().ConnectOver(descriptor, options, deadline, named); });
}

uint64_t Shard::UnreadBytes(ConnectionId connection) {
  return impl_->progress.WithLock([&] { return impl_->engine.UnreadBytes(connection); }, false);
}

absl::StatusOr<ConnectionCounters> Shard::Counters(ConnectionId connection) {
  return impl_->progress.WithLock([&] { return impl_->engine.Counters(connection); }, false);
}

bool Shard::TryLead() { return impl_->progress.TryLead(); }
void Shard::EndLead(bool hands_over) { impl_->progress.EndLead(hands_over); }
bool Shard::LedLately() const { return impl_->progress.led_lately(); }
bool Shard::Poll(Time* began) { return impl_->progress.Poll(began); }
int Shard::fd() const { return impl_->progress.fd(); }
bool Shard::WaitForWork(Time deadline, int also, const sigset_t* signals) {
  return impl_->progress.Wait(deadline, also, signals);
}
void Shard::Wake() { impl_->progress.Wake(); }

bool Shard::Advance(Time deadline) { return impl_->engine.fabric().Advance(deadline); }

}  // namespace esdp::provider
