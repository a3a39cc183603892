#ifndef ESDP_TESTS_SIM_CHECKERS_MEMORY_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_MEMORY_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "impl/fabric/sim/wire_observer.h"
#include "tests/sim/checkers/findings.h"

namespace esdp::simulation {

// Which memory of the applications is lent to the library, from an accepted post to its terminal
// event; RDMA may touch nothing else of theirs, and only in the operation's direction.
class MemoryChecker {
 public:
  explicit MemoryChecker(Findings& findings) : findings_(&findings) {}

  // Memory of an application. What lies in none is the library's own.
  void AddArena(std::span<const std::byte> arena) { arenas_[arena.data()] = arena.size(); }
  // Ranges that are lent at a time do not overlap.
  void Lend(std::span<const std::byte> range, bool is_send);
  void TakeBack(std::span<const std::byte> range);

  void OnTouch(const std::byte* address, uint64_t length, fabric::sim::Touch touch);
  uint64_t touches() const { return touches_; }

 private:
  struct Lent {
    uint64_t length = 0;
    bool is_send = false;
  };

  bool IsApplicationMemory(const std::byte* address) const;

  Findings* findings_;
  uint64_t touches_ = 0;
  std::map<const std::byte*, uint64_t> arenas_;
  std::map<const std::byte*, Lent> lent_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_MEMORY_CHECKER_H_
