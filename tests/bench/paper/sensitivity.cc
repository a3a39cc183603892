#include "tests/bench/paper/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "tests/bench/paper/statements.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;

std::set<std::string> Held(const testbed::Parameters& parameters) {
  Results results(parameters);
  std::set<std::string> held;
  for (const Statement& one : Judge(results)) {
    if (one.verdict == Verdict::kWithin) held.insert(one.id);
  }
  return held;
}

// What the paper itself says of its test-bed is no guess.
bool IsGiven(std::string_view name) {
  return name == "machine.cores" || name == "machine.threads_per_core" ||
         name == "machine.cache_kib" || name == "kernel.region_kib";
}

bool IsCount(std::string_view name) {
  return name == "kernel.buffers" || name == "device.reads_in_flight" ||
         name == "device.sends_a_interrupt";
}

}  // namespace

std::vector<Loss> FindLosses(const testbed::Parameters& parameters) {
  const std::set<std::string> before = Held(parameters);
  std::vector<Loss> losses;
  for (const std::string_view name : testbed::ParameterNames()) {
    if (IsGiven(name)) continue;
    for (const double sign : {-1.0, 1.0}) {
      testbed::Parameters changed = parameters;
      double& value = *testbed::Find(changed, name);
      const double tenth = value / 10;
      value += sign * (IsCount(name) ? std::max(1.0, std::round(tenth)) : tenth);
      const std::set<std::string> held = Held(changed);
      Loss loss{.parameter = std::string(name), .value = value, .lost = {}};
      std::set_difference(before.begin(), before.end(), held.begin(), held.end(),
                          std::back_inserter(loss.lost));
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

}  // namespace esdp::paper
