#include <gtest/gtest.h>

#include "impl/sdp/connection.h"
#include "impl/sdp/receive_half.h"
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
  ReceiveHalf half;
  EXPECT_FALSE(half.MayCopyAtOnce(1));
  half.Ask(Place(100));
  EXPECT_TRUE(half.MayCopyAtOnce(100));
  EXPECT_FALSE(half.MayCopyAtOnce(101));
}

TEST(MayCopyAtOnceTest, NothingMayWhileOlderBytesAreUnread) {
  ReceiveHalf half;
  half.OnPayload(ReceiveBuffer{0}, 16, 10);
  half.Ask(Place(100));
  EXPECT_FALSE(half.MayCopyAtOnce(1));
  Actions actions;
  Counters counters;
  EXPECT_TRUE(half.CopyNext(actions, counters));
  EXPECT_TRUE(half.MayCopyAtOnce(90));
  EXPECT_FALSE(half.MayCopyAtOnce(91)) << "ten bytes of the place are taken";
}

TEST(MayCopyAtOnceTest, NothingMayIntoMemoryThatThePeerMayWriteTo) {
  ReceiveHalf half;
  half.Ask(Place(100));
  ASSERT_TRUE(half.NextToAdvertise());
  half.OnAdvertised();
  EXPECT_FALSE(half.MayCopyAtOnce(1));
}

}  // namespace
}  // namespace esdp::sdp
