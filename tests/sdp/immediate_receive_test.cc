#include <gtest/gtest.h>

#include "impl/sdp/connection.h"
#include "impl/sdp/inbound/receive_queue.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

// Data that a waiting receive takes whole goes there in one step and without a queue.

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

class TakenAtOnceTest : public ::testing::Test {
 protected:
  TakenAtOnceTest() : solo_(SmallConfig(true)) { solo_.Establish(); }
  Solo solo_;
};

TEST_F(TakenAtOnceTest, DataThatAReceiveTakesWholeEndsItInOneStepAndKeepsNoBuffer) {
  const OperationId receive = solo_.Receive(1000);
  const MessageArrived data = solo_.Next(wire::Data{}, 300);
  solo_.Step(data);

  ASSERT_EQ(solo_.Last<CopyIn>().size(), 1u);
  EXPECT_EQ(solo_.Last<CopyIn>()[0].buffer, data.buffer);
  EXPECT_EQ(solo_.Last<CopyIn>()[0].buffer_offset, wire::kBaseHeaderBytes);
  EXPECT_EQ(solo_.Last<CopyIn>()[0].target, (OperationRange{receive, 300, 0}));
  ASSERT_EQ(solo_.Last<PostReceive>().size(), 1u);
  EXPECT_EQ(solo_.Last<PostReceive>()[0].buffer, data.buffer);
  EXPECT_TRUE(std::holds_alternative<CopyIn>(solo_.last()[0]))
      << "copied before it is posted again";
  EXPECT_EQ(solo_.Result(receive)->bytes, 300u);
  EXPECT_EQ(solo_.Result(receive)->stream_offset, 0u);
  EXPECT_EQ(solo_.core().counters().bytes_received_copied, 300u);
  EXPECT_EQ(solo_.core().counters().payload_copies, 1u);
}

TEST_F(TakenAtOnceTest, DataLargerThanTheReceiveKeepsItsRestUnreadForTheNext) {
  const OperationId first = solo_.Receive(200);
  const MessageArrived data = solo_.Next(wire::Data{}, 300);
  solo_.Step(data);
  EXPECT_EQ(solo_.Result(first)->bytes, 200u);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 0u) << "100 bytes of it are unread";

  const OperationId second = solo_.Receive(1000);

  ASSERT_EQ(solo_.Last<CopyIn>().size(), 1u);
  EXPECT_EQ(solo_.Last<CopyIn>()[0].buffer, data.buffer);
  EXPECT_EQ(solo_.Last<CopyIn>()[0].buffer_offset, wire::kBaseHeaderBytes + 200u);
  EXPECT_EQ(solo_.Last<PostReceive>().size(), 1u);
  EXPECT_EQ(solo_.Result(second)->bytes, 100u);
  EXPECT_EQ(solo_.Result(second)->stream_offset, 200u);
}

TEST_F(TakenAtOnceTest, AReceiveThatWaitsForAllTakesEachMessageBehindTheLast) {
  AskReceive traits;
  traits.wait_all = true;
  const OperationId receive = solo_.Receive(300, traits);
  for (const uint32_t at : {0u, 100u, 200u}) {
    EXPECT_FALSE(solo_.Result(receive));
    solo_.Arrive(wire::Data{}, 100);
    ASSERT_EQ(solo_.Last<CopyIn>().size(), 1u);
    EXPECT_EQ(solo_.Last<CopyIn>()[0].target, (OperationRange{receive, 100, at}));
    EXPECT_EQ(solo_.Last<PostReceive>().size(), 1u);
  }
  EXPECT_EQ(solo_.Result(receive)->bytes, 300u);
}

TEST_F(TakenAtOnceTest, EachReceiveEndsWithItsOwnDataAndTheNextTakesWhatFollows) {
  const OperationId first = solo_.Receive(100);
  const OperationId second = solo_.Receive(100);
  solo_.Arrive(wire::Data{}, 100);
  EXPECT_EQ(solo_.Last<FinishOperation>().size(), 1u);
  EXPECT_EQ(solo_.Result(first)->bytes, 100u);
  EXPECT_FALSE(solo_.Result(second));
  solo_.Arrive(wire::Data{}, 40);
  EXPECT_EQ(solo_.Last<FinishOperation>().size(), 1u);
  EXPECT_EQ(solo_.Result(second)->bytes, 40u) << "a plain receive takes what comes";
  EXPECT_EQ(solo_.Result(second)->stream_offset, 100u);
  EXPECT_EQ(solo_.core().counters().receives_copied, 2u);

  solo_.Arrive(wire::Data{}, 10);
  EXPECT_EQ(solo_.Last<CopyIn>().size(), 0u) << "nothing is left of the second one's place";
  EXPECT_EQ(solo_.Result(solo_.Receive(100))->stream_offset, 140u);
}

TEST_F(TakenAtOnceTest, AReceiveOfTwoPiecesDoesNotEndWithTheFirst) {
  for (const bool wait_all : {true, false}) {
    AskReceive ask;
    ask.wait_all = wait_all;
    ask.piece = {OperationId{wait_all ? 1000u : 1001u}, 50, 0};
    ask.more = true;
    solo_.Step(ask);
    ask.piece = {ask.piece.operation, 50, 50};
    ask.more = false;
    solo_.Step(ask);

    solo_.Arrive(wire::Data{}, 50);
    EXPECT_EQ(solo_.Result(ask.piece.operation).has_value(), !wait_all);
    solo_.Arrive(wire::Data{}, 50);
    if (wait_all) {
      EXPECT_EQ(solo_.Result(ask.piece.operation)->bytes, 100u);
    }
  }
}

TEST_F(TakenAtOnceTest, OneWhosePiecesAreNotAllThereYetDoesNotEnd) {
  AskReceive ask;
  ask.piece = {OperationId{1000}, 50, 0};
  ask.more = true;
  solo_.Step(ask);
  solo_.Arrive(wire::Data{}, 50);
  EXPECT_FALSE(solo_.Result(ask.piece.operation)) << "its memory is still being told";
}

// What is left of an advert that was refused comes by itself.
TEST_F(TakenAtOnceTest, AReceiveWaitsForTheRestOfARemainderThoughItHasEnoughToEnd) {
  const OperationId first = solo_.Receive(1);
  const OperationId second = solo_.Receive(3000);
  solo_.Arrive(wire::SrcAvail{2001, 0x77, 0x4000}, 1);
  ASSERT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
  ASSERT_EQ(solo_.Result(first)->bytes, 1u) << "the inline byte";

  solo_.Arrive(wire::Data{}, 1000);
  EXPECT_EQ(solo_.Last<CopyIn>().size(), 1u);
  EXPECT_FALSE(solo_.Result(second));
  solo_.Arrive(wire::Data{}, 1000);
  EXPECT_EQ(solo_.Result(second)->bytes, 2000u);
}

TEST_F(TakenAtOnceTest, NewDataComesBehindOlderBytesThatWereUnread) {
  solo_.Arrive(wire::Data{}, 300);
  const OperationId first = solo_.Receive(100);
  solo_.Arrive(wire::Data{}, 10);
  EXPECT_EQ(solo_.Last<CopyIn>().size(), 0u);

  const OperationId second = solo_.Receive(1000);

  EXPECT_EQ(solo_.Result(first)->bytes, 100u);
  EXPECT_EQ(solo_.Result(second)->bytes, 210u);
  ASSERT_EQ(solo_.Last<CopyIn>().size(), 2u);
  EXPECT_EQ(solo_.Last<CopyIn>()[0].target.length, 200u);
  EXPECT_EQ(solo_.Last<CopyIn>()[1].target, (OperationRange{second, 10, 200}));
}

AskReceive Place(uint32_t bytes) {
  AskReceive ask;
  ask.piece = {OperationId{5}, bytes, 0};
  ask.placeable = true;
  return ask;
}

TEST(MayCopyAtOnceTest, NothingMayWithoutAPlaceThatTakesAllOfIt) {
  ReceiveQueue half;
  EXPECT_FALSE(half.MayCopyImmediate(1));
  half.Ask(Place(100));
  EXPECT_TRUE(half.MayCopyImmediate(100));
  EXPECT_FALSE(half.MayCopyImmediate(101));
}

TEST(MayCopyAtOnceTest, NothingMayWhileOlderBytesAreUnread) {
  ReceiveQueue half;
  half.OnPayload(ReceiveBuffer{0}, 16, 10);
  half.Ask(Place(100));
  EXPECT_FALSE(half.MayCopyImmediate(1));
  Actions actions;
  Counters counters;
  EXPECT_TRUE(half.CopyNext(actions, counters));
  EXPECT_TRUE(half.MayCopyImmediate(90));
  EXPECT_FALSE(half.MayCopyImmediate(91)) << "ten bytes of the place are taken";
}

TEST(MayCopyAtOnceTest, NothingMayIntoMemoryThatThePeerMayWriteTo) {
  ReceiveQueue half;
  half.Ask(Place(100));
  ASSERT_TRUE(half.NextToAdvertise());
  half.OnAdvertised();
  EXPECT_FALSE(half.MayCopyImmediate(1));
}

// [es-api D.2, 11]
TEST(CopyAtOnceTest, AReceiveThatThePeerStillHasAKeyToDoesNotEndWithItsBytes) {
  ReceiveQueue half;
  Actions actions;
  Counters counters;
  half.Ask(Place(100));
  const uint64_t number = half.NextToAdvertise()->operation_number;
  half.OnAdvertised();
  half.OnAdvertsDropped(actions);
  ASSERT_TRUE(half.MayCopyImmediate(100));
  half.CopyImmediate(ReceiveBuffer{0}, 16, 100, /*decides=*/true, actions, counters);
  EXPECT_TRUE(Solo::Of<FinishOperation>(actions).empty());

  half.OnWithdrawn(number, actions);
  half.FinishReady(/*more_comes=*/false, /*end_of_stream=*/false, counters, actions);
  EXPECT_EQ(Solo::Of<FinishOperation>(actions).size(), 1u);
}

}  // namespace
}  // namespace esdp::sdp
