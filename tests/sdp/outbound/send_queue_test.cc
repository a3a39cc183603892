#include "impl/sdp/outbound/send_queue.h"

#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

class SendQueueTest : public ::testing::Test {
 protected:
  SendQueueTest() : solo_(SmallConfig(true)) {}
  void EstablishWith(uint16_t peer_buffers) {
    Solo::Peer peer;
    peer.buffers = peer_buffers;
    solo_.Establish(peer);
  }
  static AskSend Delivered() {
    AskSend traits;
    traits.complete_at = CompleteAt::kDelivered;
    return traits;
  }
  Solo solo_;
};

TEST_F(SendQueueTest, ASmallSendGoesAtOnceWhenNothingIsInFlight) {
  EstablishWith(8);
  const OperationId send = solo_.Send(10);

  ASSERT_EQ(solo_.Last<Send>().size(), 1u);
  EXPECT_EQ(solo_.Last<Send>()[0].copied_bytes, 10u);
  EXPECT_TRUE(solo_.Result(send)) << "its memory is free as soon as it is copied";
}

TEST_F(SendQueueTest, NeighboursShareAMessageWhileAnEarlierOneIsInFlight) {
  EstablishWith(8);
  solo_.Send(10);
  const OperationId second = solo_.Send(20);
  solo_.Send(30);
  EXPECT_EQ(Solo::Of<Send>(solo_.all()).size(), 1u);
  EXPECT_TRUE(solo_.Result(second));

  solo_.Step(SendFinished{});

  ASSERT_EQ(solo_.Last<Send>().size(), 1u);
  EXPECT_EQ(solo_.Last<Send>()[0].copied_bytes, 50u);
}

TEST_F(SendQueueTest, AFullBufferGoesWithoutWaiting) {
  EstablishWith(8);
  for (int i = 0; i < 7; ++i) solo_.Send(200);

  const auto sends = Solo::Of<Send>(solo_.all());
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].copied_bytes, 200u);
  EXPECT_EQ(sends[1].copied_bytes, 1024u) << "a piece is split so that the message is full";
}

TEST_F(SendQueueTest, ALargerPieceDrivesOutTheBufferAheadOfIt) {
  EstablishWith(8);
  solo_.Send(10);
  solo_.Send(20);

  solo_.Send(1000);

  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].copied_bytes, 20u);
  EXPECT_EQ(sends[1].gather_count, 1u);
}

// R13.1.1
TEST_F(SendQueueTest, ShutdownDrivesOutThePartlyFilledBufferAndDisConnFollows) {
  EstablishWith(8);
  solo_.Send(10);
  solo_.Send(20);

  solo_.Step(AskShutdown{OperationId{90}});

  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].copied_bytes, 20u);
  EXPECT_TRUE(std::holds_alternative<wire::DisConn>(sends[1].message.body));
}

// R6.1
TEST_F(SendQueueTest, ALargePieceIsGatheredInFullMessagesWithoutACopy) {
  EstablishWith(8);
  const OperationId send = solo_.Send(2500);
  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 3u);
  EXPECT_EQ(sends[0].gather[0].length, 1024u);
  EXPECT_EQ(sends[1].gather[0].offset, 1024u);
  EXPECT_EQ(sends[2].gather[0].length, 452u);
  EXPECT_EQ(solo_.Last<CopyOut>().size(), 0u);
  solo_.Step(SendFinished{});
  solo_.Step(SendFinished{});
  EXPECT_FALSE(solo_.Result(send)) << "its last message is still being gathered";

  solo_.Step(SendFinished{});

  EXPECT_EQ(solo_.Result(send)->bytes, 2500u);
}

TEST_F(SendQueueTest, DeliveredMeansThatThePeerHasAcknowledgedTheLastByte) {
  EstablishWith(8);
  const OperationId send = solo_.Send(2000, Delivered());
  solo_.FinishSends();
  MessageArrived first = solo_.Next(wire::Data{});
  first.message.base.acknowledged = 1;
  solo_.Step(first);
  EXPECT_FALSE(solo_.Result(send));

  solo_.Arrive(wire::Data{});

  EXPECT_TRUE(solo_.Result(send));
}

TEST_F(SendQueueTest, OperationsEndInPostingOrderWhateverTheyWaitFor) {
  EstablishWith(8);
  const OperationId first = solo_.Send(10, Delivered());
  const OperationId second = solo_.Send(10);
  const OperationId empty = solo_.Send(0);
  solo_.FinishSends();
  EXPECT_FALSE(solo_.Result(second));

  solo_.Arrive(wire::Data{});

  const auto ends = solo_.Last<FinishOperation>();
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].operation, first);
  EXPECT_EQ(ends[1].operation, second);
  EXPECT_EQ(ends[2].operation, empty);
}

TEST_F(SendQueueTest, AZeroLengthSendEndsAtOnceAndSendsNothing) {
  EstablishWith(8);
  const OperationId send = solo_.Send(0);

  EXPECT_EQ(solo_.Result(send)->bytes, 0u);
  EXPECT_EQ(solo_.Last<Send>().size(), 0u);
}

// R4.3.3, R4.3.4
TEST_F(SendQueueTest, PayloadStopsAtTwoCreditsAndGoesOnWithTheThird) {
  EstablishWith(4);
  solo_.Send(5000);
  EXPECT_EQ(solo_.Last<Send>().size(), 2u);
  solo_.TellBuffers(4);

  solo_.Arrive(wire::Data{});

  EXPECT_EQ(solo_.Last<Send>().size(), 2u);
  EXPECT_EQ(solo_.core().counters().credit_stalls, 2u);
}

// R15.3
TEST_F(SendQueueTest, PayloadLeavesFourSlotsOfTheSendQueueForControl) {
  Config config = SmallConfig(true);
  config.send_work_max = 6;
  Solo solo(config);
  Solo::Peer peer;
  peer.buffers = 64;
  solo.Establish(peer);
  solo.Send(50000);
  EXPECT_EQ(solo.Last<Send>().size(), 2u);

  solo.Step(SendFinished{});

  EXPECT_EQ(solo.Last<Send>().size(), 1u);
}

TEST_F(SendQueueTest, WithoutAFreeSendBufferAPieceWaitsInItsOwnMemory) {
  Config config = SmallConfig(true);
  config.send_buffers = 1;
  Solo solo(config);
  solo.Establish();
  solo.Send(10);
  const OperationId second = solo.Send(10);
  EXPECT_FALSE(solo.Result(second));

  solo.Step(SendFinished{});

  EXPECT_TRUE(solo.Result(second));
  EXPECT_EQ(solo.Last<Send>()[0].copied_bytes, 10u);
}

TEST_F(SendQueueTest, PiecesOfOneOperationEndTogether) {
  EstablishWith(8);
  AskSend ask;
  ask.piece = {OperationId{50}, 100, 0};
  ask.more = true;
  solo_.Step(ask);
  solo_.FinishSends();
  EXPECT_FALSE(solo_.Result(OperationId{50}));
  ask.piece = {OperationId{50}, 900, 100};
  ask.more = false;
  solo_.Step(ask);
  solo_.FinishSends();

  EXPECT_EQ(solo_.Result(OperationId{50})->bytes, 1000u);
}

TEST_F(SendQueueTest, ACancelledSendThatHadNotBegunLeavesTheStreamWithoutItsBytes) {
  EstablishWith(3);
  solo_.Send(1000);
  const OperationId gone = solo_.Send(300);
  const OperationId kept = solo_.Send(400);

  solo_.Step(AskCancel{gone, CancelMode::kIfNotStarted, Outcome::kCancelled});
  EXPECT_EQ(solo_.Result(gone)->outcome, Outcome::kCancelled);
  EXPECT_EQ(solo_.Result(gone)->bytes, 0u);
  solo_.FinishSends();
  solo_.TellBuffers(8);
  solo_.Arrive(wire::Data{});
  solo_.FinishSends();

  EXPECT_EQ(solo_.Result(kept)->outcome, Outcome::kDone);
  EXPECT_EQ(solo_.Result(kept)->stream_offset, 1000u);
}

TEST_F(SendQueueTest, ASendThatHadBegunFinishesOrTakesTheConnectionWithIt) {
  for (const CancelMode mode : {CancelMode::kIfNotStarted, CancelMode::kAbortConnection}) {
    Solo solo(SmallConfig(true));
    Solo::Peer peer;
    peer.buffers = 3;
    solo.Establish(peer);
    const OperationId send = solo.Send(3000);

    solo.Step(AskCancel{send, mode, Outcome::kDeadlineExceeded});

    EXPECT_FALSE(solo.Result(send));
    EXPECT_EQ(solo.Last<Disconnect>().size(), mode == CancelMode::kAbortConnection ? 1u : 0u);
  }
}

TEST_F(SendQueueTest, SendsBehindShutdownEndInTheirTurnAsShutDown) {
  EstablishWith(8);
  const OperationId first = solo_.Send(10, Delivered());
  solo_.Step(AskShutdown{OperationId{90}});
  const OperationId late = solo_.Send(10);
  EXPECT_FALSE(solo_.Result(late));
  solo_.FinishSends();

  solo_.Arrive(wire::Data{});

  EXPECT_EQ(solo_.Result(first)->outcome, Outcome::kDone);
  EXPECT_EQ(solo_.Result(late)->outcome, Outcome::kShutDown);
  EXPECT_EQ(solo_.Result(OperationId{90})->outcome, Outcome::kDone);
}

// R6.3
TEST_F(SendQueueTest, ManySmallSendsTakeFewMessages) {
  EstablishWith(64);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 20; ++i) solo_.Send(50);
    solo_.FinishSends();
    solo_.TellBuffers(64);
    solo_.Arrive(wire::Data{});
  }

  EXPECT_EQ(solo_.core().counters().bytes_sent_copied, 100u * 20 * 50);
  EXPECT_LT(solo_.core().counters().messages_sent, 500u) << "coalesced";
}

}  // namespace
}  // namespace esdp::sdp
