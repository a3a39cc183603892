#ifndef ESDP_TESTS_SIM_FORGER_H_
#define ESDP_TESTS_SIM_FORGER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "impl/base/random.h"
#include "impl/fabric/sim/wire_observer.h"
#include "tests/sim/checkers/marks.h"

namespace esdp::simulation {

// Plays a peer that reads and writes with keys it was not given, that it was given once, or further
// than it was given: now and then a read, a write or a message that leaves becomes one of those.
// What it may touch all the same is for the checker of memory to say.
class Forger : public fabric::sim::WireObserver {
 public:
  // `chance` out of a million frames. `told` hears of each connection before the forged frame
  // leaves.
  Forger(uint64_t seed, uint32_t chance, Marks& marks, std::function<void(uint16_t)> told)
      : random_(seed), chance_(chance), marks_(&marks), told_(std::move(told)) {}

  void OnTransmit(const fabric::sim::WireEnd& from, fabric::sim::Frame& frame) override;
  void OnEnd(const fabric::sim::WireEnd& at, fabric::Cause cause) override;
  void Stop() { chance_ = 0; }

 private:
  struct Shown {
    fabric::RemoteRange place;
    uint64_t length = 0;
  };

  void NoteAdvert(const fabric::sim::Frame& frame);
  bool MayForge(const fabric::sim::Frame& frame) const;
  void Widen(fabric::sim::Frame& frame);

  Random random_;
  uint32_t chance_;
  Marks* marks_;
  std::function<void(uint16_t)> told_;
  std::vector<Shown> shown_;  // in adverts that have passed, of all connections
  std::set<uint16_t> forged_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_FORGER_H_
