// The rule of the shared bell, searched: a fabric looks at two queue pairs, and sleeps; another one
// sends by both, in every order, and wakes it by one of them for both. Every order of the steps,
// each an access to a word that both see. Nobody sleeps while there is something for him. The names
// are those of Channel, SharedBell and LocalFabric.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "gtest/gtest.h"
#include "tests/fabric/local/reached_states.h"

namespace esdp::fabric::local {
namespace {

constexpr uint8_t kMessages = 3;  // by each channel
constexpr uint8_t kBoth = 2;
constexpr uint8_t kNone = 255;

// What leaves out one of the steps that the rule needs, to see that the search finds what comes.
struct Rule {
  bool disarms_before_looking = true;
  bool looks_again_when_cold = true;  // what is not looked at any more by the way
  bool looks_again_when_gone = true;  // a queue pair is destroyed that may have been woken
  bool disarms_when_gone = true;
};

struct Channel {
  // In shared memory.
  uint8_t published = 0;
  uint8_t armed = 0;  // a count: odd where it is
  bool any_bell = false;
  // In the socket.
  bool word = false;
  // The sender's.
  uint8_t woken = 0;
  // The receiver's.
  uint8_t took = 0;
  bool is_hot = true;
  bool is_gone = false;

  friend auto operator<=>(const Channel&, const Channel&) = default;
};

enum class Sender : uint8_t { kChoose, kLookArmed, kLookBell, kRing };
enum class Receiver : uint8_t { kLook, kArm, kLookForMore, kSleep, kDisarmWoken };

struct State {
  std::array<Channel, kBoth> channels;
  Sender sender = Sender::kChoose;
  uint8_t sending = 0;   // the channel
  uint8_t seen = 0;      // its word `armed`
  uint8_t rung = kNone;  // the bell: a channel, and what its word said
  uint8_t rung_word = 0;
  Receiver receiver = Receiver::kLook;
  uint8_t at = 0;  // the channel that it looks at
  bool moved = false;
  bool look_again = false;

  friend auto operator<=>(const State&, const State&) = default;
};

void Disarm(Channel& channel) {
  if (channel.armed % 2 != 0) ++channel.armed;
  channel.any_bell = false;
}

// Of what may happen next on the sender's side.
void SenderSteps(const State& before, std::deque<State>& out) {
  State s = before;
  Channel& channel = s.channels[s.sending];
  switch (s.sender) {
    case Sender::kChoose:
      for (uint8_t which = 0; which < kBoth; ++which) {
        if (before.channels[which].published == kMessages) continue;
        State chosen = before;
        chosen.sending = which;
        ++chosen.channels[which].published;
        chosen.sender = Sender::kLookArmed;
        out.push_back(chosen);
      }
      return;
    case Sender::kLookArmed:
      s.seen = channel.armed;
      s.sender = channel.armed % 2 == 0 || channel.armed == channel.woken ? Sender::kChoose
                 : channel.any_bell && s.rung != kNone                    ? Sender::kLookBell
                                                                          : Sender::kRing;
      break;
    case Sender::kLookBell:
      s.sender = s.channels[s.rung].armed == s.rung_word ? Sender::kChoose : Sender::kRing;
      break;
    case Sender::kRing:
      channel.woken = s.seen;
      s.sender = Sender::kChoose;
      if (channel.is_gone) break;  // its socket is
      channel.word = true;
      s.rung = s.sending;
      s.rung_word = s.seen;
      break;
  }
  out.push_back(s);
}

void Look(State& s, const Rule& rule) {
  Channel& channel = s.channels[s.at];
  if (channel.is_hot && !channel.is_gone && channel.took != channel.published) {
    channel.took = channel.published;
    if (rule.disarms_before_looking) Disarm(channel);
    s.moved = true;
  }
  if (++s.at < kBoth) return;
  s.at = 0;
  s.receiver = s.moved || s.look_again ? Receiver::kLook : Receiver::kArm;
  s.moved = s.look_again = false;
}

void ArmNext(State& s) {
  s.receiver = Receiver::kArm;
  if (++s.at < kBoth) return;
  s.at = 0;
  s.receiver = s.moved ? Receiver::kLook : Receiver::kSleep;
  s.moved = false;
}

// It may get cold whenever it is armed.
void Arm(const State& before, const Rule& rule, std::deque<State>& out) {
  State s = before;
  Channel& channel = s.channels[s.at];
  const bool is_armed = channel.armed % 2 != 0;
  if (!channel.is_hot || channel.is_gone || is_armed) {
    ArmNext(s);
  } else {
    ++channel.armed;
    channel.any_bell = true;
    s.receiver = Receiver::kLookForMore;
  }
  out.push_back(s);
  if (!channel.is_hot || channel.is_gone) return;
  State cold = before;
  Channel& cools = cold.channels[cold.at];
  cools.armed = static_cast<uint8_t>(cools.armed + (is_armed ? 2 : 1));
  cools.any_bell = cools.is_hot = false;
  cold.receiver = Receiver::kLookForMore;
  if (!rule.looks_again_when_cold && is_armed) ArmNext(cold);
  out.push_back(cold);
}

void LookForMore(State& s) {
  Channel& channel = s.channels[s.at];
  if (channel.took != channel.published) {
    Disarm(channel);
    channel.is_hot = true;
    s.moved = true;
  }
  ArmNext(s);
}

void Sleep(State& s) {
  if (s.look_again) s.receiver = Receiver::kLook;
  for (uint8_t which = 0; which < kBoth; ++which) {
    if (!std::exchange(s.channels[which].word, false)) continue;
    s.channels[which].is_hot = true;
    s.at = which;
    s.receiver = Receiver::kDisarmWoken;
    return;
  }
}

// It looks at one after the other, arms one after the other if it found nothing, and sleeps if
// nothing has come meanwhile.
void ReceiverSteps(const State& before, const Rule& rule, std::deque<State>& out) {
  State s = before;
  switch (s.receiver) {
    case Receiver::kLook:
      Look(s, rule);
      break;
    case Receiver::kArm:
      return Arm(before, rule, out);
    case Receiver::kLookForMore:
      LookForMore(s);
      break;
    case Receiver::kSleep:
      Sleep(s);
      break;
    case Receiver::kDisarmWoken:
      if (rule.disarms_before_looking) Disarm(s.channels[s.at]);
      s.at = 0;
      s.receiver = Receiver::kLook;
      break;
  }
  if (s != before) out.push_back(s);
}

// The program destroys the first queue pair, between two looks or while the fabric sleeps.
void ProgramSteps(const State& before, const Rule& rule, std::deque<State>& out) {
  if (before.channels[0].is_gone || before.at != 0) return;
  if (before.receiver != Receiver::kSleep && before.receiver != Receiver::kLook) return;
  State s = before;
  Channel& channel = s.channels[0];
  if (rule.looks_again_when_gone && channel.armed % 2 != 0) s.look_again = true;
  if (rule.disarms_when_gone) Disarm(channel);
  channel.is_gone = true;
  channel.word = false;
  out.push_back(s);
}

// Of a count of Arm and Disarm it matters whether it is odd, and who remembers the last one: so
// there are few states.
State Shortened(State s) {
  if (s.sender == Sender::kChoose) s.sending = s.seen = 0;
  for (uint8_t which = 0; which < kBoth; ++which) {
    Channel& channel = s.channels[which];
    const uint8_t armed = channel.armed;
    channel.armed = armed % 2 != 0 ? 1 : 2;
    const auto shorten = [armed](uint8_t& seen) { seen = armed % 2 != 0 && seen == armed; };
    shorten(channel.woken);
    if (s.rung == which) shorten(s.rung_word);
    if (s.sender != Sender::kChoose && s.sending == which) {
      const bool odd = s.seen % 2 != 0;
      shorten(s.seen);
      if (odd && s.seen == 0) s.seen = 3;  // one that is over
    }
  }
  return s;
}

struct Found {
  size_t states = 0;
  size_t stuck = 0;  // nobody has a step left, and not all has arrived
};

Found Search(const Rule& rule, bool destroys) {
  Found found;
  found.states = ForEachReached(Shortened({}), [&](const State& state, std::deque<State>& next) {
    SenderSteps(state, next);
    ReceiverSteps(state, rule, next);
    for (const Channel& channel : state.channels) {
      if (next.empty() && !channel.is_gone && channel.took != kMessages) ++found.stuck;
    }
    if (destroys) ProgramSteps(state, rule, next);
    for (State& after : next) after = Shortened(after);
  });
  return found;
}

TEST(SharedBellModelTest, NobodySleepsWhileThereIsSomethingForHim) {
  for (const bool destroys : {false, true}) {
    const Found found = Search({}, destroys);
    EXPECT_EQ(found.stuck, 0u);
    EXPECT_GT(found.states, 1000u);
  }
}

TEST(SharedBellModelTest, EveryStepOfTheRuleIsNeeded) {
  EXPECT_GT(Search({.disarms_before_looking = false}, false).stuck, 0u);
  EXPECT_GT(Search({.looks_again_when_cold = false}, false).stuck, 0u);
  EXPECT_GT(Search({.looks_again_when_gone = false}, true).stuck, 0u);
  EXPECT_GT(Search({.disarms_when_gone = false}, true).stuck, 0u);
}

}  // namespace
}  // namespace esdp::fabric::local
