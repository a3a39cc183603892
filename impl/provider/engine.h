#ifndef ESDP_IMPL_PROVIDER_ENGINE_H_
#define ESDP_IMPL_PROVIDER_ENGINE_H_

#include <array>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/fabric/port.h"
#include "impl/provider/connections.h"
#include "impl/provider/driver.h"
#include "impl/provider/observer.h"
#include "impl/provider/regions.h"
#include "impl/provider/rendezvous.h"
#include "impl/provider/requests.h"

namespace esdp::provider {

// Everything of a shard that lies under its turn.
//
//   Owns:     the fabric and all that is on it.
//   Threads:  the holder of the turn, but for what is said to be for any.
//   Blocks:   never.
//   Units:    instants on the fabric's clock.
//   Errors:   those of shard.h.
class Engine {
 public:
  Engine(std::unique_ptr<fabric::Fabric> fabric, Observer& observer, Driver::Log log);

  fabric::Fabric& fabric() { return *fabric_; }

  // What follows happens now. To be called first by whoever has taken the turn.
  void Begin() { driver_.SetNow(fabric_->Now()); }
  void Execute(const Request& request) { requests_.Execute(request); }
  // The same, and what it makes leave is posted before the application hears of it.
  void ExecuteAtOnce(const Request& request) {
    driver_.SetEager(true);
    requests_.Execute(request);
    driver_.SetEager(false);
  }
  // Posts what was collected and lets go of what has ended.
  void Finish();
  // One round over everything that moves, bounded, so that requests are seen between rounds; true
  // if anything moved.
  bool Round();
  // When a Round is due although the fabric's descriptor stays silent.
  Time NextDeadline() const;

  absl::StatusOr<std::shared_ptr<MemoryRegion>> Register(std::span<std::byte> memory,
                                                         bool local_write, Exposure exposure);
  absl::Status Deregister(MemoryRegion& region);
  Rendezvous& rendezvous() { return rendezvous_; }
  absl::StatusOr<ConnectionCounters> Counters(ConnectionId connection);

  // The end of the shard: aborts every connection; then, when the peers have had their time, takes
  // the queue pairs away.
  void AbortAll();
  void DestroyAll();
  bool empty() const { return connections_.empty(); }

 private:
  static constexpr size_t kCompletionsPerPoll = 32;
  static constexpr int kEventsPerRound = 16;
  static constexpr int kTimersPerRound = 64;

  bool PollEvents();
  bool PollCompletions();
  bool FireTimers();
  bool Reap();

  std::unique_ptr<fabric::Fabric> fabric_;
  Driver::Log log_;
  Driver driver_;
  Connections connections_;
  Rendezvous rendezvous_;
  Requests requests_;

  uint64_t registered_bytes_ = 0;
  bool unburied_ = false;
  std::array<fabric::Completion, kCompletionsPerPoll> completions_;
  fabric::RendezvousEvent event_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_ENGINE_H_
