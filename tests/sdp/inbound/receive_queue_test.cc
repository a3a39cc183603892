#include "impl/sdp/inbound/receive_queue.h"

#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

class ReceiveQueueTest : public ::testing::Test {
 protected:
  ReceiveQueueTest() : solo_(SmallConfig(true)) { solo_.Establish(); }
  static AskReceive WaitAll() {
    AskReceive traits;
    traits.wait_all = true;
    return traits;
  }
  Solo solo_;
};

TEST_F(ReceiveQueueTest, AReceiveEndsWithWhatIsThere) {
  const OperationId receive = solo_.Receive(1000);
  solo_.Arrive(wire::Data{}, 300);

  EXPECT_EQ(solo_.Result(receive)->bytes, 300u);
  EXPECT_FALSE(solo_.Result(receive)->end_of_stream);
}

TEST_F(ReceiveQueueTest, ABufferIsPostedAgainAsSoonAsItsBytesAreCopied) {
  solo_.Arrive(wire::Data{}, 300);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 0u);
  solo_.Receive(200);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 0u) << "100 bytes of it are unread";

  solo_.Receive(200);

  ASSERT_EQ(solo_.last().size(), 3u);
  EXPECT_TRUE(std::holds_alternative<CopyIn>(solo_.last()[0]));
  EXPECT_EQ(std::get<CopyIn>(solo_.last()[0]).buffer_offset, wire::kBaseHeaderBytes + 200u);
  EXPECT_TRUE(std::holds_alternative<PostReceive>(solo_.last()[1]));
}

// R6.3
TEST_F(ReceiveQueueTest, OneReceiveTakesFromSeveralBuffers) {
  solo_.Arrive(wire::Data{}, 300);
  solo_.Arrive(wire::Data{}, 300);
  const OperationId receive = solo_.Receive(1000);

  EXPECT_EQ(solo_.Result(receive)->bytes, 600u);
  EXPECT_EQ(solo_.Last<CopyIn>()[1].target.offset, 300u);
}

TEST_F(ReceiveQueueTest, WaitAllWaitsForTheLastByte) {
  const OperationId receive = solo_.Receive(1000, WaitAll());
  solo_.Arrive(wire::Data{}, 999);
  EXPECT_FALSE(solo_.Result(receive));

  solo_.Arrive(wire::Data{}, 1);

  EXPECT_EQ(solo_.Result(receive)->bytes, 1000u);
}

TEST_F(ReceiveQueueTest, AZeroLengthReceiveEndsInItsTurn) {
  const OperationId first = solo_.Receive(10);
  const OperationId empty = solo_.Receive(0);
  EXPECT_FALSE(solo_.Result(empty));

  solo_.Arrive(wire::Data{}, 10);

  EXPECT_EQ(solo_.Result(first)->bytes, 10u);
  EXPECT_EQ(solo_.Result(empty)->bytes, 0u);
  EXPECT_FALSE(solo_.Result(empty)->end_of_stream);
}

// R13.2.2
TEST_F(ReceiveQueueTest, TheEndOfTheStreamComesBehindItsLastByteAndStays) {
  solo_.Arrive(wire::Data{}, 10);
  solo_.Arrive(wire::DisConn{});

  const OperationId last = solo_.Receive(10);
  const OperationId end = solo_.Receive(10);
  const OperationId again = solo_.Receive(10);

  EXPECT_EQ(solo_.Result(last)->bytes, 10u);
  EXPECT_FALSE(solo_.Result(last)->end_of_stream);
  for (const OperationId receive : {end, again}) {
    EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kDone);
    EXPECT_EQ(solo_.Result(receive)->bytes, 0u);
    EXPECT_TRUE(solo_.Result(receive)->end_of_stream);
  }
}

TEST_F(ReceiveQueueTest, WaitAllEndsShortAtTheEndOfTheStream) {
  const OperationId receive = solo_.Receive(100, WaitAll());
  solo_.Arrive(wire::Data{}, 10);

  solo_.Arrive(wire::DisConn{});

  EXPECT_EQ(solo_.Result(receive)->bytes, 10u);
  EXPECT_TRUE(solo_.Result(receive)->end_of_stream);
}

TEST_F(ReceiveQueueTest, AReceiveOfSeveralPiecesEndsOnlyAfterItsLastWasAsked) {
  solo_.Arrive(wire::Data{}, 10);
  AskReceive ask;
  ask.piece = {OperationId{60}, 4, 0};
  ask.more = true;
  solo_.Step(ask);
  EXPECT_FALSE(solo_.Result(OperationId{60}));
  ask.piece = {OperationId{60}, 100, 4};
  ask.more = false;
  solo_.Step(ask);

  EXPECT_EQ(solo_.Result(OperationId{60})->bytes, 10u);
}

TEST_F(ReceiveQueueTest, ACancelledReceiveWithoutBytesEndsAtOnceAndOvertakes) {
  const OperationId first = solo_.Receive(10);
  const OperationId second = solo_.Receive(10);

  solo_.Step(AskCancel{second, CancelMode::kIfNotStarted, Outcome::kDeadlineExceeded});

  EXPECT_EQ(solo_.Result(second)->outcome, Outcome::kDeadlineExceeded);
  solo_.Arrive(wire::Data{}, 20);
  EXPECT_EQ(solo_.Result(first)->bytes, 10u);
  const OperationId third = solo_.Receive(10);
  EXPECT_EQ(solo_.Result(third)->bytes, 10u) << "the cancelled one took none";
}

TEST_F(ReceiveQueueTest, ACancelledReceiveKeepsTheBytesItHas) {
  const OperationId receive = solo_.Receive(100, WaitAll());
  solo_.Arrive(wire::Data{}, 30);

  solo_.Step(AskCancel{receive, CancelMode::kIfNotStarted, Outcome::kCancelled});

  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kCancelled);
  EXPECT_EQ(solo_.Result(receive)->bytes, 30u);
}

TEST_F(ReceiveQueueTest, ACancelDuringAReadEndsBehindTheRead) {
  AskReceive traits;
  traits.placeable = true;
  traits.wait_all = true;
  const OperationId receive = solo_.Receive(20000, traits);
  solo_.Arrive(wire::SrcAvail{10000, 1, 0}, 1);

  solo_.Step(AskCancel{receive, CancelMode::kIfNotStarted, Outcome::kCancelled});
  EXPECT_FALSE(solo_.Result(receive)) << "the device still writes to it";
  solo_.Step(ReadFinished{});

  EXPECT_EQ(solo_.Result(receive)->bytes, 10000u);
}

// R4.1.5, R6.4
TEST_F(ReceiveQueueTest, PayloadIsAcknowledgedAfterAWhileAndABareDataNever) {
  solo_.Arrive(wire::Data{});
  EXPECT_EQ(solo_.Last<SetTimer>().size(), 0u);
  solo_.Arrive(wire::Data{}, 10);
  ASSERT_EQ(solo_.Last<SetTimer>().size(), 1u);
  const SetTimer timer = solo_.Last<SetTimer>()[0];
  EXPECT_EQ(timer.timer, Timer::kAcknowledge);
  EXPECT_EQ(timer.at, Time{} + std::chrono::milliseconds(10));

  solo_.now = timer.at;
  solo_.Step(TimerFired{Timer::kAcknowledge});

  ASSERT_EQ(solo_.Last<Send>().size(), 1u);
  EXPECT_EQ(solo_.Last<Send>()[0].message.base.acknowledged, 2u);
  EXPECT_EQ(solo_.Last<SetTimer>().size(), 0u);
}

TEST_F(ReceiveQueueTest, AnAcknowledgementThatRodeAlongNeedsNoMessageOfItsOwn) {
  solo_.Arrive(wire::Data{}, 10);
  solo_.Send(10);

  solo_.now = Time{} + std::chrono::milliseconds(10);
  solo_.Step(TimerFired{Timer::kAcknowledge});

  EXPECT_EQ(solo_.last().size(), 0u);
}

}  // namespace
}  // namespace esdp::sdp
