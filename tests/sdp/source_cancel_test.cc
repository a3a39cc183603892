#include <gtest/gtest.h>

#include <vector>

#include "tests/sdp/delivery.h"

// Many adverts of ours, and SrcAvailCancel with every race of section 7.4.

namespace esdp::sdp::testing {
namespace {

// --- many adverts ---

TEST_F(DeliveryTest, ASecondLargeSendMakesTheHalfPipelinedAndIsAdvertisedWithoutUserBytes) {
  Establish();
  Advertise();
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 0u);
  Advertise();
  Advertise();

  ASSERT_EQ(AllSent<wire::ModeChange>().size(), 1u);
  EXPECT_EQ(std::get<wire::ModeChange>(AllSent<wire::ModeChange>()[0].message.body),
            (wire::ModeChange{false, wire::Mode::kPipelined}));
  const auto adverts = AllSent<wire::SrcAvail>();
  ASSERT_EQ(adverts.size(), 3u);
  EXPECT_EQ(adverts[0].gather_count, 1u) << "Combined";
  EXPECT_EQ(adverts[1].gather_count + adverts[2].gather_count, 0u) << "Pipelined";
}

TEST_F(DeliveryTest, NoMoreAreOutstandingThanThePeerTakes) {
  Establish(2);
  for (int i = 0; i < 4; ++i) Advertise();
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 2u);

  solo_.Arrive(wire::RdmaRdCompl{kLarge - 1});
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 3u);
  solo_.Arrive(wire::RdmaRdCompl{kLarge});
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 4u);
}

TEST_F(DeliveryTest, ADeployedPeerGetsOneAdvertAtATimeAndNoModeChange) {
  Establish(1);
  Want(ModeWish::kPipelined);
  for (int i = 0; i < 3; ++i) Advertise();

  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 1u);
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 0u);
}

TEST_F(DeliveryTest, EachCompletionConcernsTheOldestAndSendsEndInOrder) {
  Establish();
  const OperationId first = Advertise();
  const OperationId second = Advertise(5000);
  solo_.Arrive(wire::RdmaRdCompl{kLarge - 1});
  solo_.Arrive(wire::RdmaRdCompl{5000});
  Withdrawn(1);
  EXPECT_FALSE(solo_.Result(second)) << "the first one's key still lives";
  Withdrawn(0);

  EXPECT_EQ(solo_.Result(first)->bytes_zero_copy, kLarge);
  EXPECT_EQ(solo_.Result(second)->bytes_zero_copy, 5000u);
  EXPECT_EQ(solo_.Result(second)->stream_offset, kLarge);
}

TEST_F(DeliveryTest, OnlyTheRemainderOfARefusedAdvertLeavesWhileOthersAreOutstanding) {
  Establish();
  Advertise();
  Advertise();
  solo_.Send(10);
  solo_.FinishSends();
  solo_.Arrive(wire::RdmaRdCompl{999});
  solo_.Arrive(wire::SendSm{});

  EXPECT_EQ(Gathered(AllSent<wire::Data>()), kLarge - 1000u);
  solo_.FinishSends();
  solo_.Arrive(wire::RdmaRdCompl{kLarge});
  EXPECT_EQ(AllSent<wire::Data>().back().copied_bytes, 10u) << "now the small one may go";
}

TEST_F(DeliveryTest, TwoRefusalsInARowAreAnsweredInOrder) {
  Establish();
  Advertise();
  Advertise();
  solo_.TellBuffers(0);
  solo_.Arrive(wire::SendSm{});
  solo_.Arrive(wire::SendSm{});
  EXPECT_EQ(AllSent<wire::Data>().size(), 0u);
  solo_.TellBuffers(64);
  solo_.Arrive(wire::Data{});

  const auto data = AllSent<wire::Data>();
  EXPECT_EQ(Gathered(data), 2u * kLarge - 1);
  EXPECT_EQ(data.front().gather[0].offset, 1u);
  EXPECT_EQ(data.back().gather[0].operation, OperationId{2});
}

TEST_F(DeliveryTest, ACompletionOfALaterAdvertBeforeARemainderWasSentEndsTheConnection) {
  Establish();
  Advertise();
  Advertise();
  solo_.TellBuffers(0);
  solo_.Arrive(wire::SendSm{});
  solo_.Arrive(wire::RdmaRdCompl{100});

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

// --- SrcAvailCancel ---

TEST_F(DeliveryTest, ACancelOfAnUnreadAdvertTakesItBackAndLaterSendsStayInTheStream) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  const OperationId second = Advertise(6000);
  Cancel(first);
  EXPECT_EQ(solo_.Sent<wire::SrcAvailCancel>().size(), 1u);
  EXPECT_FALSE(solo_.Result(first));
  solo_.Arrive(wire::SendSm{});
  EXPECT_EQ(solo_.Last<Withdraw>().size(), 2u);
  EXPECT_EQ(Gathered(AllSent<wire::Data>()), 6000u) << "the second one, from its first byte";
  EXPECT_FALSE(solo_.Result(first)) << "its key still lives";
  Withdrawn(0);
  EXPECT_EQ(solo_.Result(first)->outcome, Outcome::kCancelled);
  EXPECT_EQ(solo_.Result(first)->bytes, 0u);
  solo_.FinishSends();
  Withdrawn(1);

  EXPECT_EQ(solo_.Result(second)->outcome, Outcome::kDone);
  EXPECT_EQ(solo_.Result(second)->stream_offset, 0u);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

TEST_F(DeliveryTest, NoSrcAvailLeavesBeforeTheCancelIsProcessed) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first);
  Advertise();
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 1u);

  solo_.Arrive(wire::SendSm{});

  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 2u);
}

TEST_F(DeliveryTest, TheFinalCompletionThatCrossesTheCancelEndsItWithoutAnAnswer) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first);
  ArriveCrossed(wire::RdmaRdCompl{kLarge}, 1);
  Withdrawn(0);
  EXPECT_EQ(solo_.Result(first)->outcome, Outcome::kDone);
  Advertise();

  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 2u);
}

TEST_F(DeliveryTest, ASendSmThatCrossesTheCancelIsAnsweredByTheRemainder) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first);
  ArriveCrossed(wire::SendSm{}, 1);
  EXPECT_EQ(Gathered(AllSent<wire::Data>()), kLarge);
  solo_.FinishSends();
  Withdrawn(0);

  EXPECT_EQ(solo_.Result(first)->outcome, Outcome::kDone) << "the sink counts on it";
}

TEST_F(DeliveryTest, APartReadBeforeTheCancelStaysInTheStreamAndTheRestFollowsAsData) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first);
  solo_.Arrive(wire::RdmaRdCompl{4000});
  solo_.Arrive(wire::SendSm{});
  EXPECT_EQ(Gathered(AllSent<wire::Data>()), kLarge - 4000u);
  EXPECT_EQ(AllSent<wire::Data>()[0].gather[0].offset, 4000u);
  solo_.FinishSends();
  Withdrawn(0);

  EXPECT_EQ(solo_.Result(first)->bytes, kLarge);
  EXPECT_EQ(solo_.Result(first)->bytes_zero_copy, 4000u);
}

TEST_F(DeliveryTest, InCombinedTheInlineByteHasGoneSoACancelOnlyHurriesTheRest) {
  Establish(1);
  const OperationId first = Advertise();
  Cancel(first);
  EXPECT_EQ(solo_.Sent<wire::SrcAvailCancel>().size(), 1u);
  solo_.Arrive(wire::SendSm{});

  EXPECT_EQ(Gathered(AllSent<wire::Data>()), kLarge - 1u);
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 1u);
}

TEST_F(DeliveryTest, ACancelThatMayAbortAsksThePeerForNothing) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first, CancelMode::kAbortConnection);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
  EXPECT_EQ(AllSent<wire::SrcAvailCancel>().size(), 0u);
  ASSERT_EQ(solo_.Last<Disconnect>().size(), 1u);
  EXPECT_FALSE(solo_.Last<Disconnect>()[0].orderly);
}

TEST_F(DeliveryTest, ACancelThatMayAbortDoesSoAlsoBehindOneThatThePeerHasNotAnswered) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first);
  Cancel(first, CancelMode::kAbortConnection);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(DeliveryTest, ACancelThatMayAbortDoesSoWhileTheKeyOfACancelledSendLives) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId first = Advertise();
  Cancel(first);
  solo_.Arrive(wire::SendSm{});
  EXPECT_FALSE(solo_.Result(first)) << "its key still lives";
  Cancel(first, CancelMode::kAbortConnection);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(DeliveryTest, ACancelThatMayAbortLeavesTheConnectionWhereTheSendHasNotBegun) {
  Establish(1);
  Advertise();
  const OperationId behind = Advertise();
  Cancel(behind, CancelMode::kAbortConnection);

  EXPECT_EQ(solo_.Result(behind)->outcome, Outcome::kCancelled);
  Cancel(OperationId{77}, CancelMode::kAbortConnection);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

TEST_F(DeliveryTest, ACancelThatMayAbortDoesSoWhileAReadForTheReceiveRuns) {
  Establish();
  AskReceive all;
  all.placeable = all.wait_all = true;
  all.zcopy_min = 1;
  const OperationId receive = solo_.Receive(2 * kLarge, all);
  solo_.Arrive(wire::SrcAvail{kLarge, 7, 0});
  ASSERT_EQ(Solo::Of<Read>(solo_.all()).size(), 1u);
  Cancel(receive);
  EXPECT_FALSE(solo_.Result(receive)) << "the read may still write to it";
  Cancel(receive, CancelMode::kAbortConnection);

  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(DeliveryTest, ACompletionOfWhatWasRevokedIsIgnored) {
  Establish();
  Want(ModeWish::kPipelined);
  Cancel(Advertise());
  solo_.Arrive(wire::SendSm{});
  solo_.Arrive(wire::RdmaRdCompl{100});

  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

}  // namespace
}  // namespace esdp::sdp::testing
