#include <gtest/gtest.h>

#include <chrono>

#include "tests/sdp/delivery.h"

// What blocking calls ask of the core: sends that end where they are (CancelMode::kEndShort), and
// receives that end before memory that the peer shows, or that the peer is not shown.

namespace esdp::sdp::testing {
namespace {

class EndShortTest : public DeliveryTest {
 protected:
  void EndShort(OperationId id) { Cancel(id, CancelMode::kEndShort); }
  OperationId ReceiveUntilAdvert(uint32_t bytes, bool wait_all = false) {
    AskReceive traits;
    traits.until_advert = true;
    traits.wait_all = wait_all;
    return solo_.Receive(bytes, traits);
  }
};

// --- sends ---

TEST_F(EndShortTest, ASendThatWasReadInPartEndsBehindWhatWasRead) {
  Establish();
  const OperationId send = Advertise();
  const OperationId next = Advertise(6000);
  solo_.Arrive(wire::RdmaRdCompl{999});
  EndShort(send);
  EXPECT_EQ(solo_.Sent<wire::SrcAvailCancel>().size(), 1u);
  EXPECT_FALSE(solo_.Result(send));
  solo_.Arrive(wire::SendSm{});
  Withdrawn(0);

  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kCancelled);
  EXPECT_EQ(solo_.Result(send)->bytes, 1000u) << "with the inline byte";
  EXPECT_EQ(Gathered(AllSent<wire::Data>()), 6000u) << "nothing of its rest";
  solo_.FinishSends();
  Withdrawn(1);
  EXPECT_EQ(solo_.Result(next)->stream_offset, 1000u);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

TEST_F(EndShortTest, OneThatNobodyReadNeverWasInTheStream) {
  Establish();
  Want(ModeWish::kPipelined);
  const OperationId send = Advertise();
  EndShort(send);
  solo_.Arrive(wire::SendSm{});
  Withdrawn(0);

  EXPECT_EQ(solo_.Result(send)->bytes, 0u);
  const OperationId next = solo_.Send(10);
  EXPECT_EQ(solo_.Result(next)->stream_offset, 0u);
}

TEST_F(EndShortTest, OneThatWaitsForThePeersBuffersEndsBehindWhatHasLeft) {
  Establish();
  solo_.TellBuffers(3);
  solo_.Arrive(wire::Data{});
  const OperationId send = solo_.Send(kLarge);
  const OperationId next = solo_.Send(10);
  solo_.FinishSends();
  const uint64_t left = Gathered(AllSent<wire::Data>());
  ASSERT_GT(left, 0u);
  ASSERT_LT(left, kLarge);
  EXPECT_FALSE(solo_.Result(send));
  EndShort(send);

  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kCancelled);
  EXPECT_EQ(solo_.Result(send)->bytes, left);
  EXPECT_EQ(solo_.Result(next)->stream_offset, left);
}

TEST_F(EndShortTest, OneWhoseMemoryIsStillBeingSentEndsWhenThatHasLeft) {
  Establish();
  solo_.TellBuffers(3);
  solo_.Arrive(wire::Data{});
  const OperationId send = solo_.Send(kLarge);
  EndShort(send);
  EXPECT_FALSE(solo_.Result(send));
  solo_.FinishSends();
  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kCancelled);
}

TEST_F(EndShortTest, OneThatHasLeftWholeEndsAsItWould) {
  Establish();
  const OperationId send = solo_.Send(5000);
  EndShort(send);
  solo_.FinishSends();
  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kDone);
  EXPECT_EQ(solo_.Result(send)->bytes, 5000u);
}

TEST_F(EndShortTest, TheUrgentByteOfTheRestIsNeverAnnounced) {
  Establish();
  solo_.TellBuffers(3);
  solo_.Arrive(wire::Data{});
  AskSend traits;
  traits.urgent = true;
  const OperationId before = solo_.Send(kLarge);
  const OperationId urgent = solo_.Send(kLarge, traits);
  EndShort(before);
  EndShort(urgent);
  solo_.FinishSends();
  EXPECT_EQ(solo_.Result(before)->outcome, Outcome::kCancelled);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

TEST_F(EndShortTest, WhatThePeerDoesNotGiveBackInTimeAborts) {
  Establish();
  const OperationId send = Advertise();
  EndShort(send);
  solo_.now += SmallConfig(true).cancel_grace + std::chrono::milliseconds(1);
  solo_.Step(TimerFired{Timer::kCancel});
  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

TEST_F(EndShortTest, SoDoesMemoryThatDoesNotLeaveInTime) {
  Establish();
  solo_.TellBuffers(3);
  solo_.Arrive(wire::Data{});
  EndShort(solo_.Send(kLarge));
  solo_.now += SmallConfig(true).cancel_grace + std::chrono::milliseconds(1);
  solo_.Step(TimerFired{Timer::kCancel});
  EXPECT_EQ(EndedWith(), Outcome::kLocalAbort);
}

// [R7.2.2] All of it is in the stream.
TEST_F(EndShortTest, TheRemainderOfARefusedAdvertGoesOn) {
  Establish();
  const OperationId send = Advertise();
  solo_.TellBuffers(0);
  solo_.Arrive(wire::SendSm{});
  EndShort(send);
  EXPECT_FALSE(solo_.Result(send));
  solo_.now += SmallConfig(true).cancel_grace + std::chrono::milliseconds(1);
  solo_.Step(TimerFired{Timer::kCancel});
  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

// --- receives ---

TEST_F(EndShortTest, AReceiveUntilAnAdvertTakesWhatComesInMessages) {
  Establish();
  const OperationId receive = ReceiveUntilAdvert(100);
  solo_.Arrive(wire::Data{}, 60);
  EXPECT_EQ(solo_.Result(receive)->bytes, 60u);
  EXPECT_FALSE(solo_.Result(receive)->end_of_stream);
}

TEST_F(EndShortTest, AReceiveUntilAnAdvertEndsWithoutAByteWhereOneComes) {
  Establish();
  const OperationId receive = ReceiveUntilAdvert(kLarge);
  solo_.Arrive(wire::SrcAvail{kLarge, 77, 0});

  EXPECT_EQ(solo_.Result(receive)->outcome, Outcome::kDone);
  EXPECT_EQ(solo_.Result(receive)->bytes, 0u);
  EXPECT_FALSE(solo_.Result(receive)->end_of_stream);
  EXPECT_TRUE(solo_.Last<Read>().empty());
  EXPECT_TRUE(AllSent<wire::SendSm>().empty()) << "nor is the peer asked to send it";
  EXPECT_EQ(solo_.core().unread_bytes(), kLarge);
  // The next one, whose memory is registered, reads it.
  AskReceive traits;
  traits.placeable = true;
  traits.zcopy_min = 0;
  solo_.Receive(kLarge, traits);
  EXPECT_EQ(solo_.Last<Read>().size(), 1u);
  EXPECT_EQ(solo_.core().unread_bytes(), 0u);
}

TEST_F(EndShortTest, AReceiveUntilAnAdvertThatWaitsForAllEndsWithWhatItHas) {
  Establish();
  const OperationId receive = ReceiveUntilAdvert(kLarge, /*wait_all=*/true);
  solo_.Arrive(wire::Data{}, 60);
  EXPECT_FALSE(solo_.Result(receive));
  solo_.Arrive(wire::SrcAvail{kLarge, 77, 0});
  EXPECT_EQ(solo_.Result(receive)->bytes, 60u);
}

TEST_F(EndShortTest, AReceiveUntilAnAdvertThatComesBehindOneEndsAtOnce) {
  Establish();
  solo_.Arrive(wire::SrcAvail{kLarge, 77, 0});
  const OperationId receive = ReceiveUntilAdvert(kLarge);
  EXPECT_EQ(solo_.Result(receive)->bytes, 0u);
}

TEST_F(EndShortTest, AReceiveThatIsNotShownIsReadIntoAndNeverAdvertised) {
  Establish();
  Want(ModeWish::kAutomatic, ModeWish::kPipelined);
  AskReceive traits;
  traits.placeable = true;
  traits.zcopy_min = 0;
  traits.shown = false;
  const OperationId hidden = solo_.Receive(kLarge, traits);
  EXPECT_TRUE(AllSent<wire::SinkAvail>().empty());
  Cancel(hidden);
  EXPECT_EQ(solo_.Result(hidden)->outcome, Outcome::kCancelled) << "nobody has to be asked";
  solo_.Receive(kLarge, traits);
  solo_.Arrive(wire::SrcAvail{kLarge, 77, 0});
  EXPECT_EQ(solo_.Last<Read>().size(), 1u);
}

TEST_F(EndShortTest, UnreadBytesAreThoseInMessagesAndThoseShown) {
  Establish();
  EXPECT_EQ(solo_.core().unread_bytes(), 0u);
  solo_.Arrive(wire::Data{}, 60);
  solo_.Arrive(wire::Data{}, 40);
  EXPECT_EQ(solo_.core().unread_bytes(), 100u);
  solo_.Receive(70);
  EXPECT_EQ(solo_.core().unread_bytes(), 30u);
  solo_.Arrive(wire::SrcAvail{kLarge, 77, 0}, 1);
  EXPECT_EQ(solo_.core().unread_bytes(), 30u + kLarge);
}

}  // namespace
}  // namespace esdp::sdp::testing
