#ifndef ESDP_IMPL_PROVIDER_ENGINE_H_
#define ESDP_IMPL_PROVIDER_ENGINE_H_

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/fabric/port.h"
#include "impl/provider/observer.h"
#include "impl/provider/regions.h"
#include "impl/provider/residue.h"
#include "impl/provider/session/closed_connections.h"
#include "impl/provider/session/connections.h"
#include "impl/provider/session/driver.h"
#include "impl/provider/session/requests.h"
#include "impl/provider/setup/establishment.h"
#include "impl/provider/setup/rendezvous.h"

namespace esdp::provider {

// Everything of a shard that lies under its lock.
//
//   Owns:     the fabrics and all that is on them.
//   Threads:  the holder of the shard lock, but for what is said to be for any.
//   Blocks:   never.
//   Units:    instants on the first fabric's clock, which is also that of the others.
//   Errors:   those of shard.h.
class Engine {
 public:
  // One fabric at least; connections are made over the first of them that leads to the peer.
  Engine(std::vector<std::unique_ptr<fabric::Fabric>> fabrics, Observer& observer, Driver::Log log,
         const PeerBounds& bounds, WireTap* tap);

  // The first one: its clock is the engine's, and in virtual time it is the only one.
  fabric::Fabric& fabric() { return *fabrics_.front(); }
  // What tells of arrivals.
  std::vector<int> fds() const;
  // As Fabric::ExpectWaits, of all of them.
  bool ExpectWaits(bool expected);
  // A Round would find something of which the descriptors need not tell.
  bool HasUnpolled() const {
    return std::any_of(fabrics_.begin(), fabrics_.end(),
                       [](const auto* fabric) { return fabric->HasUnpolled(); });
  }

  // What follows happens now. To be called first by whoever has taken the shard lock.
  void Begin() { driver_.SetNow(fabric().Now()); }
  // When it began.
  Time now() const { return driver_.now(); }
  void Execute(const Request& request) { requests_.Execute(request); }
  // The same, and what it makes leave is posted before the application hears of it.
  void ExecuteNow(const Request& request) {
    driver_.SetEager(true);
    requests_.Execute(request);
    driver_.SetEager(false);
  }
  bool TrySendImmediate(ConnectionId connection, ImmediateSend& send) {
    return requests_.TrySendImmediate(connection, send);
  }
  // Room for so many operations at once: none of them then fails for want of it.
  void ReserveOperations(size_t operations) {
    driver_.operations().Reserve(operations);
    driver_.timers().ReserveOperations(operations);
  }
  // Posts what was collected and lets go of what has ended.
  void Finish() {
    driver_.Flush();
    if (HasAnythingToReap()) Reap();
  }
  // One round over everything that moves, bounded, so that requests are seen between rounds; true
  // if anything moved.
  bool Round();
  // When a Round is due although the fabrics' descriptors stay silent.
  Time NextDeadline() const;

  absl::StatusOr<std::shared_ptr<MemoryRegion>> Register(std::span<std::byte> memory,
                                                         bool local_write, Exposure exposure,
                                                         int file = -1);
  bool SharesMemory() const {
    return std::any_of(fabrics_.begin(), fabrics_.end(),
                       [](const auto* fabric) { return fabric->limits().shares_memory; });
  }
  absl::StatusOr<std::shared_ptr<MemoryRegion>> RegisterDmaBuf(const fabric::DmaBuf& buffer,
                                                               std::span<std::byte> addresses,
                                                               Exposure exposure);
  absl::Status Deregister(MemoryRegion& region);
  Rendezvous& rendezvous() { return rendezvous_; }
  uint64_t UnreadBytes(ConnectionId connection);
  absl::StatusOr<ConnectionCounters> Counters(ConnectionId connection);

  // The end of the shard: aborts every connection; then, when the peers have had their time, takes
  // the queue pairs away.
  void AbortAll();
  void DestroyAll();
  bool empty() const { return connections_.empty(); }
  // When all that are there have ended, more have than may leave behind what they used.
  bool HasResidue() {
    residue_.NoteMost(connections_.size());
    return residue_.IsTooMuch(0);
  }

 private:
  static constexpr size_t kCompletionsPerPoll = 32;
  static constexpr int kEventsPerRound = 16;
  static constexpr int kTimersPerRound = 64;
  static constexpr uint32_t kRoundsForAnUnused = 8;
  // No operation has this name.
  static constexpr uint64_t kResidueAlarm = ~uint64_t{2};

  absl::StatusOr<std::shared_ptr<MemoryRegion>> Count(
      absl::StatusOr<std::shared_ptr<MemoryRegion>> region);
  bool Poll(uint8_t place);
  bool PollEvents(uint8_t place);
  bool PollCompletions(uint8_t place);
  bool FireTimers();
  bool HasAnythingToReap() { return !driver_.ended().empty() || !connections_.all_freed(); }
  bool Reap();
  // For more of it than may stay the alarm is set.
  void MindResidue();
  void GiveBack();

  std::vector<std::unique_ptr<fabric::Fabric>> owned_;
  const Fabrics fabrics_;
  Driver::Log log_;
  Driver driver_;
  Connections connections_;
  ClosedConnections closed_;
  Establishment establishment_;
  Rendezvous rendezvous_;
  Requests requests_;
  Residue residue_;
  bool residue_is_due_ = false;

  uint64_t registered_bytes_ = 0;
  uint32_t rounds_ = 0;
  std::array<fabric::Completion, kCompletionsPerPoll> completions_;
  fabric::RendezvousEvent event_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_ENGINE_H_
