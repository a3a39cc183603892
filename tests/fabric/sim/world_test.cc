#include "impl/fabric/sim/world.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace esdp::fabric::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class WorldTest : public ::testing::Test {
 protected:
  // An event that notes its name and the time.
  World::Event Note(const std::string& name) {
    return [this, name] {
      names_ += name;
      times_.push_back(world_.Now());
    };
  }

  World world_{WorldOptions{}};
  std::string names_;
  std::vector<Time> times_;
};

TEST_F(WorldTest, EventsRunInOrderOfTimeAndThenOfScheduling) {
  const Time start = world_.Now();
  world_.Schedule(start + milliseconds(3), Note("d"));
  world_.Schedule(start + milliseconds(1), Note("a"));
  world_.Schedule(start + milliseconds(2), Note("b"));
  world_.Schedule(start + milliseconds(2), Note("c"));

  world_.RunUntilIdle();

  EXPECT_EQ(names_, "abcd");
  EXPECT_EQ(times_, (std::vector{start + milliseconds(1), start + milliseconds(2),
                                 start + milliseconds(2), start + milliseconds(3)}));
  EXPECT_TRUE(world_.idle());
}

TEST_F(WorldTest, AnEventOfThePastRunsNow) {
  const Time start = world_.Now();
  world_.Schedule(start - milliseconds(5), Note("a"));

  EXPECT_TRUE(world_.Step(kTimeInfinite));

  EXPECT_EQ(world_.Now(), start);
  EXPECT_EQ(names_, "a");
}

TEST_F(WorldTest, EventsMayScheduleEvents) {
  world_.Schedule(world_.Now() + milliseconds(1), [&] {
    names_ += "a";
    world_.Schedule(world_.Now(), Note("b"));
  });
  world_.Schedule(world_.Now() + milliseconds(1), Note("c"));

  world_.RunUntilIdle();

  EXPECT_EQ(names_, "acb");
}

TEST_F(WorldTest, StepStopsAtTheDeadlineAndTimeIsThenTheDeadline) {
  const Time start = world_.Now();
  world_.Schedule(start + milliseconds(2), Note("a"));

  EXPECT_FALSE(world_.Step(start + milliseconds(1)));
  EXPECT_EQ(world_.Now(), start + milliseconds(1));
  EXPECT_EQ(names_, "");

  EXPECT_TRUE(world_.Step(start + milliseconds(2)));
  EXPECT_EQ(names_, "a");
}

TEST_F(WorldTest, TimeStandsStillWhenNothingIsLeftForEver) {
  const Time start = world_.Now();

  EXPECT_FALSE(world_.Step(kTimeInfinite));
  EXPECT_EQ(world_.Now(), start);
  EXPECT_FALSE(world_.Step(start - milliseconds(1)));
  EXPECT_EQ(world_.Now(), start);
}

TEST_F(WorldTest, CancelledEventsNeitherRunNorMoveTime) {
  const Time start = world_.Now();
  const World::EventKey cancelled = world_.Schedule(start + milliseconds(9), Note("x"));
  const World::EventKey run = world_.Schedule(start + milliseconds(1), Note("a"));
  world_.Cancel(cancelled);

  world_.RunUntilIdle();
  world_.Cancel(run);
  world_.Cancel(cancelled);

  EXPECT_EQ(names_, "a");
  EXPECT_EQ(world_.Now(), start + milliseconds(1));
}

TEST_F(WorldTest, RunUntilStopsAtTheConditionOrTheDeadline) {
  const Time start = world_.Now();
  for (int i = 1; i <= 5; ++i) world_.Schedule(start + milliseconds(i), Note("a"));

  EXPECT_TRUE(world_.RunUntil([&] { return names_.size() == 2; }, kTimeInfinite));
  EXPECT_EQ(world_.Now(), start + milliseconds(2));
  EXPECT_FALSE(world_.RunUntil([&] { return names_.size() == 9; }, start + milliseconds(4)));
  EXPECT_EQ(names_.size(), 4u);
  EXPECT_FALSE(world_.RunUntil([&] { return names_.size() == 9; }, kTimeInfinite));
  EXPECT_EQ(names_.size(), 5u);
}

class Bell : public Inhabitant {
 public:
  Bell(World& world, std::string& log, const std::string& name, bool something)
      : world_(world), log_(log), name_(name), something_(something) {}
  bool HasSomethingToPoll() const override { return something_; }
  void RingDoorbell() override {
    log_ += name_;
    stepped_ = stepped_ || world_.Step(kTimeInfinite);
  }
  bool stepped() const { return stepped_; }

 private:
  World& world_;
  std::string& log_;
  std::string name_;
  bool something_;
  bool stepped_ = false;
};

TEST_F(WorldTest, DoorbellsRingAfterAStepForThoseWhoHaveSomethingInOrderOfNumbers) {
  Bell second(world_, names_, "2", true);
  Bell silent(world_, names_, "-", false);
  Bell first(world_, names_, "1", true);
  world_.Join(20, &second);
  world_.Join(15, &silent);
  world_.Join(10, &first);
  world_.Schedule(world_.Now(), Note("a"));
  world_.Schedule(world_.Now(), Note("b"));

  EXPECT_TRUE(world_.Step(kTimeInfinite));
  EXPECT_EQ(names_, "a12");
  world_.Leave(10);
  EXPECT_TRUE(world_.Step(kTimeInfinite));
  EXPECT_EQ(names_, "a12b2");
  EXPECT_FALSE(world_.Step(kTimeInfinite));
  EXPECT_EQ(names_, "a12b2");
}

TEST_F(WorldTest, ADoorbellCannotStep) {
  Bell bell(world_, names_, "1", true);
  world_.Join(1, &bell);
  world_.Schedule(world_.Now(), Note("a"));
  world_.Schedule(world_.Now(), Note("b"));

  EXPECT_TRUE(world_.Step(kTimeInfinite));

  EXPECT_FALSE(bell.stepped());
  EXPECT_EQ(names_, "a1");
}

TEST_F(WorldTest, TransitIsDrawnFromItsRangeAndUsesAllOfIt) {
  World world({.seed = 5, .transit_min = microseconds(2), .transit_max = microseconds(4)});
  Duration low = kDurationInfinite;
  Duration high{};
  for (int i = 0; i < 1000; ++i) {
    const Duration transit = world.DrawTransit(1);
    low = std::min(low, transit);
    high = std::max(high, transit);
  }

  EXPECT_GE(low, microseconds(2));
  EXPECT_LT(low, std::chrono::nanoseconds(2100));
  EXPECT_LE(high, microseconds(4));
  EXPECT_GT(high, std::chrono::nanoseconds(3900));
}

TEST_F(WorldTest, TheSameSeedDrawsTheSameNumbers) {
  World one({.seed = 42});
  World same({.seed = 42});
  World other({.seed = 43});
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    const Duration drawn = one.DrawTransit(0);
    EXPECT_EQ(drawn, same.DrawTransit(0));
    different += drawn == other.DrawTransit(0) ? 0 : 1;
  }
  EXPECT_GT(different, 90);
}

TEST_F(WorldTest, TheGeneratorIsTheSameOnEveryMachine) {
  Random random(0);
  EXPECT_EQ(random.Next(), 0xe220a8397b1dcdafull);  // the reference values of SplitMix64
  EXPECT_EQ(random.Next(), 0x6e789e6aa1b965f4ull);
  EXPECT_EQ(random.Between(7, 7), 7u);
}

TEST_F(WorldTest, RefusesTransitTimesTheWrongWayRound) {
  EXPECT_FALSE(MakeWorld({.transit_min = microseconds(5), .transit_max = microseconds(4)}).ok());
  EXPECT_FALSE(MakeWorld({.transit_min = microseconds(-1)}).ok());
  EXPECT_TRUE(MakeWorld({.transit_min = microseconds(4), .transit_max = microseconds(4)}).ok());
}

}  // namespace
}  // namespace esdp::fabric::sim
