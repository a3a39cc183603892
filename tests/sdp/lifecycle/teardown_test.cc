#include "impl/sdp/lifecycle/teardown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::Pair;
using testing::PairOptions;
using testing::SmallConfig;
using testing::Solo;

constexpr OperationId kShut{90};
constexpr OperationId kClose{91};
constexpr OperationId kAbort{92};

class TeardownTest : public ::testing::Test {
 protected:
  TeardownTest() : solo_(SmallConfig(true)) { solo_.Establish(); }
  void FireClose() { solo_.Step(TimerFired{Timer::kClose}); }
  std::vector<Disconnect> Ends() { return Solo::Of<Disconnect>(solo_.all()); }
  Outcome ClosedWith() { return Solo::Of<ReportClosed>(solo_.all()).at(0).cause; }
  Solo solo_;
};

TEST_F(TeardownTest, ShutdownFinishesWhenDisConnHasLeft) {
  solo_.Step(AskShutdown{kShut});
  EXPECT_EQ(solo_.Sent<wire::DisConn>().size(), 1u);
  EXPECT_FALSE(solo_.Result(kShut));

  solo_.FinishSends();

  EXPECT_EQ(solo_.Result(kShut)->outcome, Outcome::kDone);
}

// R13.1.1
TEST_F(TeardownTest, DisConnWaitsForEveryByteOfAnAdvert) {
  AskSend traits;
  traits.exposable = true;
  traits.zcopy_min = 4096;
  solo_.Send(10000, traits);
  solo_.Step(AskShutdown{kShut});
  EXPECT_EQ(solo_.Sent<wire::DisConn>().size(), 0u);
  solo_.Arrive(wire::RdmaRdCompl{5000});
  EXPECT_EQ(solo_.Sent<wire::DisConn>().size(), 0u);

  solo_.Arrive(wire::RdmaRdCompl{4999});

  EXPECT_EQ(solo_.Sent<wire::DisConn>().size(), 1u);
}

// R13.2.8
TEST_F(TeardownTest, AHalfClosedConnectionStillReceives) {
  solo_.Step(AskShutdown{kShut});
  solo_.FinishSends();
  const OperationId receive = solo_.Receive(100);
  solo_.Arrive(wire::Data{}, 10);

  EXPECT_EQ(solo_.Result(receive)->bytes, 10u);
  EXPECT_EQ(solo_.core().phase(), Phase::kFinWait1);
}

// R13.2.3
TEST_F(TeardownTest, TheFirstCloserEndsTheConnectionOnThePeersDisConn) {
  solo_.Step(AskShutdown{kShut});
  solo_.FinishSends();

  solo_.Arrive(wire::DisConn{});

  ASSERT_EQ(Ends().size(), 1u);
  EXPECT_TRUE(Ends()[0].orderly);
  solo_.Step(ConnectionLost{.clean = true});
  EXPECT_EQ(ClosedWith(), Outcome::kDone);
}

// R13.2.5
TEST_F(TeardownTest, TheConnectionIsNotEndedBeforeOurDisConnHasLeft) {
  solo_.Step(AskShutdown{kShut});
  solo_.Arrive(wire::DisConn{});
  EXPECT_EQ(Ends().size(), 0u);

  solo_.FinishSends();

  EXPECT_EQ(Ends().size(), 1u);
}

// R13.2.4
TEST_F(TeardownTest, TheSecondCloserWaitsForThePeerAndThenEndsItItself) {
  solo_.Arrive(wire::DisConn{});
  solo_.Step(AskShutdown{kShut});
  solo_.FinishSends();
  EXPECT_EQ(solo_.core().phase(), Phase::kLastAck);
  const auto timers = Solo::Of<SetTimer>(solo_.all());
  ASSERT_EQ(timers.size(), 1u);
  EXPECT_EQ(timers[0].at, Time{} + std::chrono::seconds(5));
  EXPECT_EQ(Ends().size(), 0u);

  solo_.now = timers[0].at;
  FireClose();

  ASSERT_EQ(Ends().size(), 1u);
  EXPECT_TRUE(Ends()[0].orderly);
}

// R13.2.2, R13.2.6
TEST_F(TeardownTest, WhatThePeerSentBeforeItsEndStaysReadable) {
  solo_.Step(AskShutdown{kShut});
  solo_.FinishSends();
  solo_.Arrive(wire::Data{}, 10);
  solo_.Arrive(wire::DisConn{});
  solo_.Step(ConnectionLost{.clean = true});
  EXPECT_EQ(solo_.Last<ReportClosed>().size(), 0u);

  const OperationId receive = solo_.Receive(100);

  EXPECT_EQ(solo_.Result(receive)->bytes, 10u);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 0u);
  EXPECT_EQ(ClosedWith(), Outcome::kDone);
  const OperationId end = solo_.Receive(100);
  EXPECT_TRUE(solo_.Result(end)->end_of_stream);
}

// R13.2.6: its process has ended, say, before we have read.
TEST_F(TeardownTest, WhatThePeerSentBeforeItsEndStaysReadableAlsoWhereItWaitsForNoEndOfOurs) {
  for (const bool clean : {true, false}) {
    Solo solo(SmallConfig(true));
    solo.Establish();
    solo.Arrive(wire::Data{}, 10);
    solo.Arrive(wire::DisConn{});
    const OperationId send = solo.Send(5000);
    solo.Step(ConnectionLost{.clean = clean});
    EXPECT_EQ(solo.Result(send)->outcome, Outcome::kPeerReset);
    EXPECT_EQ(solo.Last<ReportClosed>().size(), 0u);

    const OperationId receive = solo.Receive(100);

    EXPECT_EQ(solo.Result(receive)->bytes, 10u);
    ASSERT_EQ(solo.Last<ReportClosed>().size(), 1u);
    EXPECT_EQ(solo.Last<ReportClosed>()[0].cause, Outcome::kPeerReset);
    const OperationId end = solo.Receive(100);
    EXPECT_TRUE(solo.Result(end)->end_of_stream);
  }
}

TEST_F(TeardownTest, AGracefulCloseEndsReceivesAndThenItselfLast) {
  const OperationId receive = solo_.Receive(10);
  solo_.Step(AskClose{kClose, false});
  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kShutDown);
  solo_.FinishSends();
  solo_.Arrive(wire::DisConn{});
  EXPECT_FALSE(solo_.Result(kClose));

  solo_.Step(ConnectionLost{.clean = true});

  EXPECT_EQ(solo_.Result(kClose)->outcome, Outcome::kDone);
  EXPECT_TRUE(std::holds_alternative<ReportClosed>(*(solo_.last().end() - 2)) ||
              std::holds_alternative<ReportClosed>(solo_.last().back()));
}

// R13.2.7
TEST_F(TeardownTest, ClosingWithUnreadDataDropsItAndEndsInOrder) {
  solo_.Arrive(wire::Data{}, 10);
  solo_.Step(AskClose{kClose, false});

  EXPECT_EQ(solo_.Sent<wire::DisConn>().size(), 1u);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 1u) << "the peer gets its credit back";
  EXPECT_EQ(Ends().size(), 0u);
  solo_.FinishSends();
  solo_.Arrive(wire::DisConn{});
  solo_.Step(ConnectionLost{});
  EXPECT_EQ(solo_.Result(kClose)->outcome, Outcome::kDone);
}

// R13.2.7
TEST_F(TeardownTest, ClosingWithAnAdvertUnreadHasItSentAndDropsIt) {
  solo_.Arrive(wire::SrcAvail{10000, 1, 0}, 1);
  solo_.Step(AskClose{kClose, false});

  EXPECT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
  solo_.Arrive(wire::Data{}, 1000);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 1u);
  EXPECT_EQ(Ends().size(), 0u);
}

// R13.2.7
TEST_F(TeardownTest, AnAdvertBehindACloseIsSentAndDropped) {
  solo_.Step(AskClose{kClose, false});
  solo_.Arrive(wire::SrcAvail{10000, 1, 0}, 1);

  EXPECT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
  EXPECT_EQ(Ends().size(), 0u);
}

// R13.2.7
TEST_F(TeardownTest, DataBehindACloseIsDropped) {
  solo_.Step(AskClose{kClose, false});
  solo_.Arrive(wire::Data{}, 1);

  EXPECT_EQ(solo_.Last<PostReceive>().size(), 1u);
  EXPECT_EQ(Ends().size(), 0u);
}

// R13.2.10
TEST_F(TeardownTest, AnAbortBehindACloseEndsBothAndSaysWhatWasMissing) {
  solo_.Step(AskClose{kClose, false});
  solo_.FinishSends();
  solo_.Step(AskClose{kAbort, true});
  ASSERT_EQ(Ends().size(), 1u);
  EXPECT_FALSE(Ends()[0].orderly);
  EXPECT_THAT(Ends()[0].reason, ::testing::HasSubstr("the peer had not closed"));
  solo_.Step(ConnectionLost{});

  EXPECT_EQ(solo_.Result(kClose)->outcome, Outcome::kLocalAbort);
  EXPECT_EQ(solo_.Result(kAbort)->outcome, Outcome::kDone);
}

// R13.1.3
TEST_F(TeardownTest, AnAbortBehindDisConnSaysAbortConnAndOneBeforeItDoesNot) {
  Solo before(SmallConfig(true));
  before.Establish();
  before.Step(AskClose{kClose, true});
  EXPECT_EQ(before.Last<Send>().size(), 0u);
  EXPECT_EQ(before.Last<Disconnect>().size(), 1u);

  solo_.Step(AskShutdown{kShut});
  solo_.Step(AskClose{kClose, true});

  EXPECT_EQ(solo_.Sent<wire::AbortConn>().size(), 1u);
  EXPECT_EQ(solo_.Last<Disconnect>().size(), 1u);
}

TEST_F(TeardownTest, AnAbortEndsEverythingInOrderAndTheCloseLast) {
  AskSend delivered;
  delivered.complete_at = CompleteAt::kDelivered;
  const OperationId first = solo_.Send(10, delivered);
  const OperationId second = solo_.Send(5000);
  const OperationId receive = solo_.Receive(10);
  solo_.Step(AskClose{kClose, true});
  EXPECT_EQ(solo_.Last<FinishOperation>().size(), 0u);

  solo_.Step(ConnectionLost{});

  const auto ends = solo_.Last<FinishOperation>();
  ASSERT_EQ(ends.size(), 4u);
  EXPECT_EQ(ends[0].operation, first);
  EXPECT_EQ(ends[1].operation, second);
  EXPECT_EQ(ends[2].operation, receive);
  EXPECT_EQ(ends[3].operation, kClose);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ends[static_cast<size_t>(i)].outcome, Outcome::kLocalAbort);
  EXPECT_EQ(ends[3].outcome, Outcome::kDone) << "an abort was what it asked for";
}

// R13.2.10
TEST_F(TeardownTest, TheLingerLimitTurnsAGracefulCloseIntoAnAbort) {
  solo_.Step(AskClose{kClose, false});
  solo_.FinishSends();
  solo_.now = Time{} + std::chrono::seconds(60);

  FireClose();

  ASSERT_EQ(Ends().size(), 1u);
  EXPECT_FALSE(Ends()[0].orderly);
  solo_.Step(ConnectionLost{});
  EXPECT_EQ(solo_.Result(kClose)->outcome, Outcome::kLocalAbort);
}

// R13.1.4
TEST_F(TeardownTest, ALossWithoutDisConnIsAResetForAll) {
  const OperationId receive = solo_.Receive(10);
  solo_.Step(ConnectionLost{.clean = true});

  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kPeerReset);
  EXPECT_EQ(ClosedWith(), Outcome::kPeerReset);
}

TEST_F(TeardownTest, AFailedQueuePairIsAFabricError) {
  solo_.Step(ConnectionLost{.clean = false, .fabric_error = true});

  EXPECT_EQ(ClosedWith(), Outcome::kFabricError);
}

// R13.1.4
TEST_F(TeardownTest, AbortConnIsAReset) {
  solo_.Arrive(wire::DisConn{});
  solo_.Arrive(wire::AbortConn{});
  solo_.Step(ConnectionLost{});

  EXPECT_EQ(ClosedWith(), Outcome::kPeerReset);
}

// R17.3, R17.8
TEST_F(TeardownTest, DataOrASecondDisConnBehindDisConnIsAViolation) {
  for (const bool data : {true, false}) {
    Solo solo(SmallConfig(true));
    solo.Establish();
    solo.Arrive(wire::DisConn{});
    solo.Arrive(wire::Data{});
    EXPECT_EQ(solo.Last<Disconnect>().size(), 0u) << "a bare Data is legal";

    data ? solo.Arrive(wire::Data{}, 1) : solo.Arrive(wire::DisConn{});

    ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
    EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kPeerProtocol);
  }
}

// R17.8
TEST_F(TeardownTest, DisConnWithAnAdvertUnprocessedIsAViolation) {
  solo_.Arrive(wire::SrcAvail{10000, 1, 0}, 1);
  solo_.Arrive(wire::DisConn{});

  ASSERT_EQ(Ends().size(), 1u);
  EXPECT_EQ(Ends()[0].cause, Outcome::kPeerProtocol);
}

TEST_F(TeardownTest, TheFirstCauseStaysTheRootCause) {
  const OperationId receive = solo_.Receive(10);
  solo_.Step(MessageRefused{"first"});
  solo_.Step(MessageRefused{"second"});
  solo_.Step(AskClose{kClose, true});
  solo_.Step(ConnectionLost{.clean = false, .fabric_error = true});

  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kPeerProtocol);
  EXPECT_STREQ(Solo::Of<ReportClosed>(solo_.all())[0].reason, "first");
  EXPECT_EQ(Ends().size(), 1u);
}

TEST_F(TeardownTest, RequestsBehindTheEndFinishAtOnceWithTheRootCause) {
  solo_.Step(MessageRefused{"garbage"});
  solo_.Step(ConnectionLost{});

  const OperationId send = solo_.Send(10);
  const OperationId receive = solo_.Receive(10);
  solo_.Step(AskShutdown{kShut});

  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kPeerProtocol);
  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kPeerProtocol);
  EXPECT_EQ(solo_.Result(kShut)->outcome, Outcome::kPeerProtocol);
}

TEST_F(TeardownTest, TimersAreTakenBackWhenTheConnectionEnds) {
  solo_.Arrive(wire::Data{}, 10);
  solo_.Step(AskClose{kClose, true});

  EXPECT_EQ(solo_.Last<ClearTimer>().size(), 1u);
}

// R13.2.9
TEST(TeardownPairTest, TwoSidesThatCloseAtTheSameTimeBothEndInOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    PairOptions options;
    options.a = SmallConfig(true);
    options.b = SmallConfig(false);
    Pair pair(options, seed);
    pair.Connect();
    pair.a.AskToSend({.pieces = {0}, .complete_at = CompleteAt::kDelivered});
    const OperationId a = pair.a.AskToClose(false);
    const OperationId b = pair.b.AskToClose(false);

    pair.Settle();

    EXPECT_EQ(pair.a.operation(a).result->outcome, Outcome::kDone) << seed;
    EXPECT_EQ(pair.b.operation(b).result->outcome, Outcome::kDone) << seed;
  }
}

}  // namespace
}  // namespace esdp::sdp
