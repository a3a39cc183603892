#ifndef ESDP_TESTS_SIM_STATION_H_
#define ESDP_TESTS_SIM_STATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "impl/base/random.h"
#include "impl/fabric/sim/world.h"
#include "tests/sim/checkers/completion_checker.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/memory_checker.h"
#include "tests/sim/plan.h"

namespace esdp::simulation {

// Memory that runs take turns with, so that pages are touched once.
class ArenaPool {
 public:
  using Arena = std::unique_ptr<std::byte[]>;
  static constexpr uint64_t kBytes = kExposures.size() * kRegionBytes;
  Arena Take();
  void Give(Arena arena) { free_.push_back(std::move(arena)); }

 private:
  std::vector<Arena> free_;
};

// A piece of registered memory in use by one operation.
struct Piece {
  Slice slice;
  std::span<std::byte> bytes;
  size_t region = 0;
};

// One application: a Context, a queue, memory in a region for each kind of exposure, and a
// listener.
class Station {
 public:
  Station(Findings& findings, std::string name, ArenaPool& arenas);
  ~Station();

  absl::Status Open(const std::shared_ptr<fabric::sim::World>& world, const StationPlan& plan,
                    const SocketOptions& socket, MemoryChecker& memory);
  // Nothing when there is no room. The pieces taken at a time do not overlap.
  std::optional<Piece> Take(uint64_t length, bool may_expose_region, Random& random);
  void Give(const Piece& piece);

  // What is waiting in the listener's queue.
  std::vector<Event> TakeEvents();
  Address address() const { return listener.local(); }
  // What it keeps registered: its regions, and the bounce pool if that was used.
  size_t Registrations() const;
  // Ends the listener and the regions; finds what is left.
  void Close();

  Context context;
  EventQueue queue;  // of the listener
  Socket listener;
  CompletionChecker completions;
  bool bounced = false;  // its Context has registered a bounce pool, and keeps it

 private:
  Findings* findings_;
  std::string name_;
  ArenaPool* arenas_;
  ArenaPool::Arena arena_;
  std::array<Region, kExposures.size()> regions_;
  std::array<std::map<uint64_t, uint64_t>, kExposures.size()> taken_;  // offset, length
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_STATION_H_
