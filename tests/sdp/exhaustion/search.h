#ifndef ESDP_TESTS_SDP_EXHAUSTION_SEARCH_H_
#define ESDP_TESTS_SDP_EXHAUSTION_SEARCH_H_

#include <cstdint>
#include <string>

#include "tests/sdp/exhaustion/marks.h"
#include "tests/sdp/exhaustion/scenario.h"

namespace esdp::sdp::exhaustion {

struct Result {
  uint64_t states = 0;  // different ones
  uint64_t steps = 0;   // ways from one to the next
  uint64_t ends = 0;    // states in which nothing can happen any more
  size_t depth = 0;     // the longest way
  Marks reached = 0;
  bool cut_short = false;      // the limit of states was reached
  std::string counterexample;  // the way to the first fault, to be read; empty if there is none
};

// Every state that a scenario can reach, depth first, each once: states of equal digest are one.
// Stops at the first fault, and where there are more than `states_max` states.
Result Explore(const Scenario& scenario, uint64_t states_max);

}  // namespace esdp::sdp::exhaustion

#endif  // ESDP_TESTS_SDP_EXHAUSTION_SEARCH_H_
