// Whole runs in which one thing is spoiled: the checkers find it from outside.

#include <algorithm>
#include <chrono>
#include <functional>

#include "gtest/gtest.h"
#include "tests/sim/run.h"

namespace esdp::simulation {
namespace {

using fabric::sim::Frame;
using fabric::sim::FrameKind;
using fabric::sim::WireEnd;

// Two applications that send and read to the end; nothing goes wrong by itself.
Plan QuietPlan(uint64_t seed) {
  Plan plan = DrawPlan(seed);
  plan.faults = {};
  plan.hostile = plan.forged = 0;
  plan.death_after = Duration::zero();
  plan.leaves = {1, 0, 0, 0};
  plan.weights = {8, 8, 0, 0, 0, 0};
  plan.acts_max = 20;
  plan.deadline_chance = 0;
  return plan;
}

class SabotageTest : public ::testing::Test {
 protected:
  // Seeds until the sabotage has struck; what was found then.
  Findings PlayUntil(const std::function<bool()>& struck, const Sabotage& sabotage) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      const Outcome outcome = Play(QuietPlan(seed), arenas_, sabotage);
      if (struck()) return outcome.findings;
      EXPECT_TRUE(outcome.findings.empty()) << outcome.findings.texts()[0];
    }
    ADD_FAILURE() << "there was nothing to spoil";
    return {};
  }

  // The marks of sixty quiet plans with something added, in which nothing may be found.
  Marks PlayWithoutFinding(const std::function<void(Plan&)>& add) {
    Marks marks;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Plan plan = QuietPlan(seed);
      add(plan);
      const Outcome outcome = Play(plan, arenas_);
      EXPECT_TRUE(outcome.findings.empty()) << plan.Describe() << outcome.findings.texts()[0];
      marks.Merge(outcome.marks);
    }
    return marks;
  }

  ArenaPool arenas_;
};

// Spoils one frame.
class Spoiler : public fabric::sim::WireObserver {
 public:
  explicit Spoiler(std::function<bool(Frame&)> spoil) : spoil_(std::move(spoil)) {}
  void OnTransmit(const WireEnd&, Frame& frame) override {
    if (!struck && spoil_(frame)) struck = true;
  }
  bool struck = false;

 private:
  std::function<bool(Frame&)> spoil_;
};

TEST_F(SabotageTest, QuietRunsAreWithoutFindings) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = Play(QuietPlan(seed), arenas_);
    EXPECT_TRUE(outcome.findings.empty()) << outcome.findings.texts()[0];
    EXPECT_GT(outcome.lives, 0u);
  }
}

// With three receive buffers each way both ends may know each other at two credits, one short of
// what payload needs, and answer each other's bare Data in step.
TEST_F(SabotageTest, ThreeBuffersEachWayCarryBothWaysAtOnce) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Plan plan = QuietPlan(seed);
    plan.socket = {.receive_buffers = 3, .receive_buffer_bytes = 1024};
    plan.size_max = 20'000;
    plan.transit_max = std::chrono::microseconds(1);
    plan.rest_max = Duration(0);
    plan.read_rest_max = Duration(0);
    const Outcome outcome = Play(plan, arenas_);
    EXPECT_TRUE(outcome.findings.empty()) << plan.Describe() << outcome.findings.texts()[0];
  }
}

TEST_F(SabotageTest, AByteThatChangesOnTheWayIsFound) {
  Spoiler spoiler([](Frame& frame) {
    if (frame.kind != FrameKind::kSend || frame.payload.size() < 100) return false;
    frame.payload.back() ^= std::byte{1};
    return true;
  });
  const Findings findings =
      PlayUntil([&] { return spoiler.struck; }, {.wire = &spoiler, .events = nullptr});
  EXPECT_TRUE(findings.Mention("of the stream is wrong"));
}

TEST_F(SabotageTest, AByteOfAReadThatChangesOnTheWayIsFound) {
  Spoiler spoiler([](Frame& frame) {
    if (frame.kind != FrameKind::kReadResponse || frame.payload.size() < 100) return false;
    frame.payload.back() ^= std::byte{1};
    return true;
  });
  const Findings findings =
      PlayUntil([&] { return spoiler.struck; }, {.wire = &spoiler, .events = nullptr});
  EXPECT_TRUE(findings.Mention("of the stream is wrong"));
}

TEST_F(SabotageTest, AByteThatIsDroppedIsFound) {
  Spoiler spoiler([](Frame& frame) {
    if (frame.kind != FrameKind::kSend || frame.payload.size() < 100) return false;
    frame.payload.pop_back();
    // The header says so, too: a perfect message with a byte too few.
    const uint32_t length = static_cast<uint32_t>(frame.payload.size());
    StoreBigEndian<uint32_t>(frame.payload, 4, length);
    return true;
  });
  const Findings findings =
      PlayUntil([&] { return spoiler.struck; }, {.wire = &spoiler, .events = nullptr});
  EXPECT_FALSE(findings.empty());
}

TEST_F(SabotageTest, AnEventThatComesTwiceIsFound) {
  bool struck = false;
  const auto twice = [&](const Event& event) -> std::vector<Event> {
    if (struck || event.type != EventType::kSend) return {event};
    struck = true;
    return {event, event};
  };
  const Findings findings = PlayUntil([&] { return struck; }, {.events = twice});
  EXPECT_TRUE(findings.Mention("an event after the terminal one"));
}

TEST_F(SabotageTest, AnEventThatIsLostIsFoundAsAStall) {
  bool struck = false;
  const auto lost = [&](const Event& event) -> std::vector<Event> {
    if (struck || event.type != EventType::kRecv) return {event};
    struck = true;
    return {};
  };
  const Findings findings = PlayUntil([&] { return struck; }, {.events = lost});
  EXPECT_TRUE(findings.Mention("stalled"));
  EXPECT_TRUE(findings.Mention("operations without an end"));
}

TEST_F(SabotageTest, AMessageThatIsLostIsFound) {
  // A frame that nobody knows what to do with.
  Spoiler spoiler([](Frame& frame) {
    if (frame.kind != FrameKind::kSend || frame.payload.size() < 100) return false;
    frame.kind = FrameKind::kReady;
    return true;
  });
  const Findings findings =
      PlayUntil([&] { return spoiler.struck; }, {.wire = &spoiler, .events = nullptr});
  EXPECT_FALSE(findings.empty());
}

TEST_F(SabotageTest, AForgedKeyReachesNoMemoryThatIsNotShown) {
  const Marks marks = PlayWithoutFinding([](Plan& plan) {
    plan.forged = 500'000;
    plan.socket.zcopy_send_min = plan.socket.zcopy_recv_min = 100;
  });
  EXPECT_GT(marks.Count("a key guessed"), 0u);
  EXPECT_GT(marks.Count("a key used again, or another's"), 0u);
  EXPECT_GT(marks.Count("a key used beyond its range"), 0u);
  EXPECT_GT(marks.Count("a forged key refused"), 0u);
}

TEST_F(SabotageTest, WhoTalksWithADeadProcessHearsOfItAndNobodyElseDoes) {
  const Marks marks = PlayWithoutFinding([](Plan& plan) {
    plan.death_after = std::chrono::microseconds(200);
    plan.death_is_told = plan.seed % 2 == 0;
  });
  EXPECT_GT(marks.Count("a peer that died: reset by the peer"), 0u);
  EXPECT_GT(marks.Count("a peer that died: peer silent"), 0u);
  EXPECT_GT(marks.Count("a connection that outlives another's death"), 0u);
}

TEST_F(SabotageTest, ARunIsTheSameWhenItIsPlayedAgainAndAnotherIsNot) {
  const Outcome one = Play(DrawPlan(3), arenas_);
  const Outcome again = Play(DrawPlan(3), arenas_);
  const Outcome other = Play(DrawPlan(4), arenas_);
  EXPECT_EQ(one.digest, again.digest);
  EXPECT_NE(one.digest, other.digest);
}

}  // namespace
}  // namespace esdp::simulation
