#include "tests/sdp/exhaustion/search.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/sdp/exhaustion/world.h"

namespace esdp::sdp::exhaustion {
namespace {

// No way of a scenario is so long unless two ends go round in circles: MSeq tells each round apart.
constexpr size_t kWayMax = 300;

// A state on the way to the present one, and which of its happenings are tried.
struct Place {
  World world;
  std::vector<Happening> possible;
  size_t next = 0;
};

class Search {
 public:
  Search(const Scenario& scenario, uint64_t states_max)
      : scenario_(scenario), states_max_(states_max) {}

  Result Run() {
    Enter(World(scenario_));
    while (!way_.empty() && result_.counterexample.empty() && !result_.cut_short) {
      Place& place = way_.back();
      if (place.next == place.possible.size()) {
        way_.pop_back();
        continue;
      }
      const Happening happening = place.possible[place.next++];
      World world = place.world;
      world.Do(happening);
      ++result_.steps;
      Enter(std::move(world));
    }
    return result_;
  }

 private:
  void Enter(World world) {
    result_.reached |= world.TakeMarks();
    if (!world.wrong().empty()) {
      result_.counterexample = Tell();
      return;
    }
    if (!seen_.insert(world.digest()).second) return;
    ++result_.states;
    result_.cut_short = result_.states >= states_max_;
    Place place{std::move(world), {}, 0};
    place.world.Possible(place.possible);
    result_.depth = std::max(result_.depth, way_.size());
    if (!place.possible.empty()) {
      way_.push_back(std::move(place));
      if (way_.size() > kWayMax) result_.counterexample = Tell();
      return;
    }
    ++result_.ends;
    place.world.CheckEnd();
    result_.reached |= place.world.TakeMarks();
    if (!place.world.wrong().empty()) result_.counterexample = Tell();
  }

  // The same way once more, with everything told.
  std::string Tell() const {
    World world(scenario_);
    std::string text = std::string(scenario_.name) + ":\n";
    for (const Place& place : way_) {
      if (place.next > 0) world.Do(place.possible[place.next - 1], &text);
    }
    if (way_.size() > kWayMax) return text + "==> no end: the two go round in circles\n";
    std::vector<Happening> possible;
    world.Possible(possible);
    if (world.wrong().empty() && possible.empty()) world.CheckEnd(&text);
    return text + "==> " + world.wrong() + "\n";
  }

  const Scenario& scenario_;
  const uint64_t states_max_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Place> way_;
  Result result_;
};

}  // namespace

Result Explore(const Scenario& scenario, uint64_t states_max) {
  return Search(scenario, states_max).Run();
}

}  // namespace esdp::sdp::exhaustion
