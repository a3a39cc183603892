#ifndef ESDP_TESTS_FABRIC_LOCAL_REACHED_STATES_H_
#define ESDP_TESTS_FABRIC_LOCAL_REACHED_STATES_H_

#include <cstddef>
#include <deque>
#include <set>

namespace esdp::fabric::local {

// Searches a model: calls visit(state, next) once for each state that is reached from `first`, which
// is the first of them; visit appends to `next`, a deque of states, what may come after it. Returns
// how many there are.
template <typename State, typename Visit>
size_t ForEachReached(const State& first, const Visit& visit) {
  std::set<State> seen{first};
  std::deque<State> waiting{first};
  while (!waiting.empty()) {
    std::deque<State> next;
    visit(waiting.front(), next);
    waiting.pop_front();
    for (const State& state : next) {
      if (seen.insert(state).second) waiting.push_back(state);
    }
  }
  return seen.size();
}

}  // namespace esdp::fabric::local

#endif  // ESDP_TESTS_FABRIC_LOCAL_REACHED_STATES_H_
