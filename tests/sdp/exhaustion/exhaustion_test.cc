#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

#include "tests/base/sanitized.h"
#include "tests/sdp/exhaustion/search.h"

// All interleavings of two ends, scenario by scenario. ESDP_EXHAUSTION=large tries the large ones
// as well, which take minutes.

namespace esdp::sdp::exhaustion {
namespace {

constexpr uint64_t kStatesMax = 200'000'000;
// Under a sanitizer: what all these states touch, more of them touch again.
constexpr uint64_t kSanitizedStatesMax = 30'000;

std::vector<Scenario> Asked() {
  std::vector<Scenario> all = AllScenarios();
  if (kSanitized) {
    std::erase_if(all, [](const Scenario& it) { return it.states_min > kSanitizedStatesMax; });
  }
  const char* asked = std::getenv("ESDP_EXHAUSTION");
  if (asked == nullptr || std::strcmp(asked, "large") != 0) return all;
  for (Scenario& scenario : LargeScenarios()) all.push_back(std::move(scenario));
  return all;
}

class ExhaustionTest : public ::testing::TestWithParam<Scenario> {};

// R7.4.2, R7.4.4, R7.4.5, R7.4.6, R7.4.7, R7.4.8, R7.4.9, R15.1
TEST_P(ExhaustionTest, NoInterleavingBreaksAPromiseAndTheNamedOutcomesAreReached) {
  const Scenario& scenario = GetParam();
  const Result result = Explore(scenario, kStatesMax);
  std::cout << scenario.name << ": " << result.states << " states, " << result.steps << " steps, "
            << result.ends << " ends, depth " << result.depth << "\n";
  EXPECT_EQ(result.counterexample, "");
  EXPECT_FALSE(result.cut_short);
  EXPECT_GE(result.states, scenario.states_min);
  EXPECT_GE(result.ends, scenario.ends_min);
  EXPECT_EQ(ToText(scenario.must_reach & ~result.reached), "") << "not reached";
}

INSTANTIATE_TEST_SUITE_P(All, ExhaustionTest, ::testing::ValuesIn(Asked()),
                         [](const auto& it) { return std::string(it.param.name); });

Scenario Named(const char* name) {
  for (const Scenario& scenario : AllScenarios()) {
    if (std::strcmp(scenario.name, name) == 0) return scenario;
  }
  ADD_FAILURE() << "no scenario " << name;
  return {};
}

// --- a search that cannot fail proves nothing ---

TEST(ExhaustionFaultTest, AByteThatChangesOnItsWayIsFound) {
  Scenario scenario = Named("SrcAvail");
  scenario.fault = Fault::kChangesAByte;
  EXPECT_NE(Explore(scenario, kStatesMax).counterexample, "");
}

TEST(ExhaustionFaultTest, ALostSendSmIsFoundAsTwoEndsThatAreStuck) {
  Scenario scenario = Named("BlockedBothWays");
  scenario.fault = Fault::kLosesSendSm;
  const std::string way = Explore(scenario, kStatesMax).counterexample;
  EXPECT_NE(way.find("==> a: stuck: "), std::string::npos) << way;
}

TEST(ExhaustionFaultTest, CreditsThatWereNotGivenAreFoundWhenTheyAreUsed) {
  Scenario scenario = Named("OneWayFlood");
  scenario.fault = Fault::kPromisesTooMuch;
  const std::string way = Explore(scenario, kStatesMax).counterexample;
  EXPECT_NE(way.find("==> b: credits are overdrawn"), std::string::npos) << way;
}

TEST(ExhaustionFaultTest, ALostSuspCommAckIsFoundAsAConnectionThatFails) {
  Scenario scenario = Named("Suspend");
  scenario.fault = Fault::kLosesSuspCommAck;
  const std::string way = Explore(scenario, kStatesMax).counterexample;
  EXPECT_NE(way.find("the connection is broken, and nobody asked"), std::string::npos) << way;
}

TEST(ExhaustionFaultTest, AnUrgentByteThatIsNoMoreIsFound) {
  Scenario scenario = Named("Urgent");
  scenario.fault = Fault::kLosesOobPresent;
  const std::string way = Explore(scenario, kStatesMax).counterexample;
  EXPECT_NE(way.find("an urgent byte is received as any other"), std::string::npos) << way;
}

TEST(ExhaustionFaultTest, TheWayToAFaultIsToldStepByStep) {
  Scenario scenario = Named("SrcAvail");
  scenario.fault = Fault::kChangesAByte;
  const std::string way = Explore(scenario, kStatesMax).counterexample;
  for (const char* part : {"a: asks send 0: 20 bytes, direct\n", "Expose 0[0..20)",
                           "b: gets SrcAvail ", "Read into 4[0..", "b: READ is placed\n", "==> "}) {
    EXPECT_NE(way.find(part), std::string::npos) << part << "\n" << way;
  }
}

}  // namespace
}  // namespace esdp::sdp::exhaustion
