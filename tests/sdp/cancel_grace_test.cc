#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "tests/sdp/delivery.h"

// What is taken back and not given back in time: Config::cancel_grace.

namespace esdp::sdp::testing {
namespace {

using std::chrono::milliseconds;

constexpr Duration kGrace = milliseconds(700);

Config WithGrace(Duration grace) {
  Config config = SmallConfig(true);
  config.cancel_grace = grace;
  return config;
}

class CancelGraceTest : public DeliveryTest {
 protected:
  CancelGraceTest() : CancelGraceTest(kGrace) {}
  explicit CancelGraceTest(Duration grace) : DeliveryTest(WithGrace(grace)) {}

  // The time at which the timer of cancels is set to fire.
  std::optional<Time> Due() const {
    std::optional<Time> due;
    for (const Action& action : solo_.all()) {
      const auto* set = std::get_if<SetTimer>(&action);
      const auto* clear = std::get_if<ClearTimer>(&action);
      if (set != nullptr && set->timer == Timer::kCancel) due = set->at;
      if (clear != nullptr && clear->timer == Timer::kCancel) due.reset();
    }
    return due;
  }
  void FireAt(Time time) {
    solo_.now = time;
    solo_.Step(TimerFired{Timer::kCancel});
  }
  OperationId ShownReceive() {
    AskReceive traits;
    traits.placeable = true;
    traits.zcopy_min = 4096;
    return solo_.Receive(kLarge, traits);
  }
};

class NoGraceTest : public CancelGraceTest {
 protected:
  NoGraceTest() : CancelGraceTest(Duration::max()) {}
};

TEST_F(CancelGraceTest, ASendThatIsNotGivenBackInTimeAborts) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId send = Advertise();
  const Time asked = solo_.now;
  Cancel(send);
  ASSERT_EQ(Due(), asked + kGrace);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
  FireAt(asked + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
  ASSERT_EQ(solo_.Last<Disconnect>().size(), 1u);
  EXPECT_FALSE(solo_.Last<Disconnect>()[0].orderly);
}

TEST_F(CancelGraceTest, TheTimeRunsAlsoWhileTheCancelWaitsForCredits) {
  Establish();
  Want(ModeWish::kPipelined);
  solo_.TellBuffers(2);
  const OperationId send = Advertise();
  solo_.Arrive(wire::Data{});
  Cancel(send);
  FireAt(solo_.now + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(CancelGraceTest, ASecondCancelDoesNotPutItOff) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId send = Advertise();
  const Time asked = solo_.now;
  Cancel(send);
  solo_.now += kGrace / 2;
  Cancel(send);
  FireAt(asked + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(CancelGraceTest, WhatIsGivenBackInTimeLeavesTheConnection) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  const Time asked = solo_.now;
  Cancel(first);
  solo_.Arrive(wire::SendSm{});
  Withdrawn(0);
  ASSERT_EQ(solo_.Result(first)->outcome, Outcome::kCancelled);
  FireAt(asked + kGrace);
  EXPECT_EQ(EndedWith(), Outcome::kDone);

  // The next one has its own time.
  const OperationId second = Advertise();
  Cancel(second);
  EXPECT_EQ(Due(), solo_.now + kGrace);
}

TEST_F(CancelGraceTest, AnEarlierOneThatHasEndedDoesNotShortenTheTimeOfALaterOne) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  const Time asked = solo_.now;
  Cancel(first);
  solo_.Arrive(wire::SendSm{});
  Withdrawn(0);
  solo_.now += kGrace / 2;
  const Time later = solo_.now;
  Cancel(Advertise());
  FireAt(asked + kGrace);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
  ASSERT_EQ(Due(), later + kGrace);
  FireAt(later + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(CancelGraceTest, ASendThatHasPartlyGoneIsFinishedWithoutABound) {
  Establish(1);
  const OperationId send = Advertise();  // Combined: its first byte has gone
  Cancel(send);
  solo_.TellBuffers(0);
  solo_.Arrive(wire::SendSm{});
  FireAt(solo_.now + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

TEST_F(CancelGraceTest, AReceiveWhoseReadIsNotAnsweredAborts) {
  Establish();
  AskReceive all;
  all.placeable = all.wait_all = true;
  all.zcopy_min = 1;
  const OperationId receive = solo_.Receive(2 * kLarge, all);
  solo_.Arrive(wire::SrcAvail{kLarge, 7, 0});
  ASSERT_EQ(Solo::Of<Read>(solo_.all()).size(), 1u);
  Cancel(receive);
  EXPECT_FALSE(solo_.Result(receive));
  FireAt(solo_.now + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(CancelGraceTest, AReceiveThatIsShownAndNotGivenBackInTimeAborts) {
  Establish();
  solo_.Arrive(wire::ModeChange{false, wire::Mode::kPipelined});
  const OperationId receive = ShownReceive();
  ASSERT_EQ(AllSent<wire::SinkAvail>().size(), 1u);
  Cancel(receive);
  EXPECT_EQ(AllSent<wire::SinkAvailCancel>().size(), 1u);
  EXPECT_FALSE(solo_.Result(receive));
  FireAt(solo_.now + kGrace);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(CancelGraceTest, AReceiveThatEndsAtOnceHasNoTimer) {
  Establish();
  const OperationId receive = solo_.Receive(100);
  Cancel(receive);

  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kCancelled);
  EXPECT_FALSE(Due());
}

TEST_F(NoGraceTest, WithoutABoundItIsWaitedFor) {
  Establish();
  Want(ModeWish::kPipelined);
  Cancel(Advertise());

  EXPECT_FALSE(Due());
}

}  // namespace
}  // namespace esdp::sdp::testing
