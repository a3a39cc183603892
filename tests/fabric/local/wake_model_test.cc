// The rule of waking, searched: every order of the steps that two ends take, each an access to a
// word of the blocks in one order that both see. Nobody ends up asleep while there is something for
// him. The names are those of Channel.

#include <cstddef>
#include <cstdint>
#include <deque>

#include "gtest/gtest.h"
#include "tests/fabric/local/reached_states.h"

namespace esdp::fabric::local {
namespace {

constexpr uint8_t kMessages = 4;
constexpr uint8_t kRoom = 2;  // slots

enum Source : uint8_t {
  kPut,
  kPublish,
  kLookArmed,
  kRefresh,
  kStarve,
  kRefreshAgain,
  kArmSource,
  kLookAgain,
  kSourceSleeps,
  kSent
};
enum Sink : uint8_t {
  kTake,
  kTell,
  kLookStarved,
  kWakeSource,
  kArmSink,
  kLookForMore,
  kSinkSleeps
};

struct State {
  uint8_t source = kPut;
  uint8_t sink = kTake;
  // In the blocks.
  uint8_t slots = 0;  // that can be seen by their laps
  uint8_t published = 0;
  uint8_t taken = 0;
  uint8_t sink_armed = 0;
  uint8_t source_armed = 0;
  bool starved = false;
  // In the sockets.
  bool sink_word = false;
  bool source_word = false;
  // What each knows for itself.
  uint8_t known_taken = 0;
  uint8_t took = 0;
  uint8_t woke_sink = 0;
  uint8_t woke_source = 0;

  friend auto operator<=>(const State&, const State&) = default;
};

// What leaves out one of the steps that the rule needs, to see that the search finds what comes.
struct Rule {
  bool looks_after_arming = true;
  bool refreshes_after_starving = true;
  bool disarms = true;
};

State SourceStep(State s, const Rule& rule) {
  switch (s.source) {
    case kPut:
      if (s.slots == kMessages) {
        s.source = kSent;
      } else if (s.slots - s.known_taken == kRoom) {
        s.source = kRefresh;
      } else {
        ++s.slots;
        s.source = kPublish;
      }
      break;
    case kPublish:
      s.published = s.slots;
      s.source = kLookArmed;
      break;
    case kLookArmed:
      if (s.sink_armed % 2 != 0 && s.sink_armed != s.woke_sink) {
        s.woke_sink = s.sink_armed;
        s.sink_word = true;
      }
      s.source = kPut;
      break;
    case kRefresh:
      s.source = s.taken != s.known_taken ? kPut : kStarve;
      if (s.taken != s.known_taken) s.starved = false;
      s.known_taken = s.taken;
      break;
    case kStarve:
      s.starved = true;
      s.source = rule.refreshes_after_starving ? kRefreshAgain : kArmSource;
      break;
    case kRefreshAgain:
      s.source = s.taken != s.known_taken ? kPut : kArmSource;
      s.known_taken = s.taken;
      break;
    case kArmSource:
      if (s.source_armed % 2 == 0) ++s.source_armed;
      s.source = kLookAgain;
      break;
    case kLookAgain:
      s.source = rule.looks_after_arming && s.taken != s.known_taken ? kPut : kSourceSleeps;
      if (s.source == kPut && rule.disarms) ++s.source_armed;
      if (s.source == kPut) s.known_taken = s.taken;
      break;
    case kSourceSleeps:
      if (!s.source_word) break;
      s.source_word = false;
      if (rule.disarms) ++s.source_armed;
      s.source = kRefresh;
      break;
    default:
      break;
  }
  return s;
}

State SinkStep(State s, const Rule& rule) {
  switch (s.sink) {
    case kTake:
      s.sink = s.slots != s.took ? kTell : kArmSink;
      if (s.sink == kTell) ++s.took;
      break;
    case kTell:
      s.taken = s.took;
      s.sink = kLookStarved;
      break;
    case kLookStarved:
      s.sink = s.starved ? kWakeSource : kTake;
      if (rule.disarms && s.sink_armed % 2 != 0) ++s.sink_armed;
      break;
    case kWakeSource:
      if (s.source_armed % 2 != 0 && s.source_armed != s.woke_source) {
        s.woke_source = s.source_armed;
        s.source_word = true;
      }
      s.sink = kTake;
      break;
    case kArmSink:
      if (s.sink_armed % 2 == 0) ++s.sink_armed;
      s.sink = kLookForMore;
      break;
    case kLookForMore:
      s.sink = rule.looks_after_arming && s.published != s.took ? kTake : kSinkSleeps;
      if (s.sink == kTake && rule.disarms) ++s.sink_armed;
      break;
    case kSinkSleeps:
      if (!s.sink_word) break;
      s.sink_word = false;
      if (rule.disarms) ++s.sink_armed;
      s.sink = kTake;
      break;
    default:
      break;
  }
  return s;
}

// Of a count of Arm and Disarm it matters whether it is odd, and whether it is the one that was
// woken for: so there are few states.
void Shorten(uint8_t& armed, uint8_t& woken) {
  const bool same = armed == woken;
  armed = armed % 2 != 0 ? 1 : 2;
  woken = armed == 1 && same ? 1 : 0;
}

State Shortened(State state) {
  Shorten(state.sink_armed, state.woke_sink);
  Shorten(state.source_armed, state.woke_source);
  return state;
}

struct Found {
  size_t states = 0;
  size_t stuck = 0;  // both sleep, or one has nothing to do, and not all has arrived
};

Found Search(const Rule& rule) {
  Found found;
  found.states = ForEachReached(Shortened({}), [&](const State& state, std::deque<State>& next) {
    for (const State& after :
         {Shortened(SourceStep(state, rule)), Shortened(SinkStep(state, rule))}) {
      if (after != state) next.push_back(after);
    }
    if (next.empty() && state.took != kMessages) ++found.stuck;
  });
  return found;
}

TEST(WakeModelTest, NobodySleepsWhileThereIsSomethingForHim) {
  const Found found = Search({});
  EXPECT_EQ(found.stuck, 0u);
  EXPECT_GT(found.states, 500u);
}

TEST(WakeModelTest, EveryStepOfTheRuleIsNeeded) {
  EXPECT_GT(Search({.looks_after_arming = false}).stuck, 0u);
  EXPECT_GT(Search({.disarms = false}).stuck, 0u);
}

}  // namespace
}  // namespace esdp::fabric::local
