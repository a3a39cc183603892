#ifndef ESDP_TESTS_SIM_RUN_H_
#define ESDP_TESTS_SIM_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "impl/fabric/sim/faults.h"
#include "impl/fabric/sim/wire_observer.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/marks.h"
#include "tests/sim/plan.h"
#include "tests/sim/station.h"

namespace esdp::simulation {

// What came of one run.
struct Outcome {
  uint64_t digest = 0;  // of everything that happened, on the wires and to the applications
  uint64_t lives = 0;   // connections that came about
  uint64_t messages = 0;
  uint64_t touches = 0;  // RDMA to the applications' memory
  fabric::sim::FaultCounts faults{};
  Marks marks;
  Findings findings;
  std::string history;  // its end, if anything was found
};

// Something that a test does to a run: a fault of its own in the wire, or in what the checkers hear
// of events.
struct Sabotage {
  fabric::sim::WireObserver* wire = nullptr;
  std::function<std::vector<Event>(const Event&)> events = nullptr;  // instead of this one
};

// Plays the plan: contexts, connections and their applications in one world, with all checkers
// listening. The same plan has the same outcome.
Outcome Play(const Plan& plan, ArenaPool& arenas, const Sabotage& sabotage = {});

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_RUN_H_
