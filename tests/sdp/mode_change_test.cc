#include <gtest/gtest.h>

#include <vector>

#include "tests/sdp/delivery.h"

// The modes of both halves: what they permit, who changes them, and many adverts of the peer's.

namespace esdp::sdp::testing {
namespace {

// --- modes ---

TEST_F(DeliveryTest, BackInCombinedTheAdvertsStayValidAndTheNextWaitsForAllOfThem) {
  Establish();
  Want(ModeWish::kPipelined);
  Advertise();
  Advertise();
  Want(ModeWish::kCombined);
  EXPECT_EQ(std::get<wire::ModeChange>(AllSent<wire::ModeChange>().back().message.body),
            (wire::ModeChange{false, wire::Mode::kCombined}));
  Advertise();
  solo_.Arrive(wire::RdmaRdCompl{kLarge});
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 2u);
  solo_.Arrive(wire::RdmaRdCompl{kLarge});

  ASSERT_EQ(AllSent<wire::SrcAvail>().size(), 3u);
  EXPECT_EQ(AllSent<wire::SrcAvail>()[2].gather_count, 1u) << "with an inline byte again";
}

TEST_F(DeliveryTest, AWishMadeBeforeTheConnectionCarriesDataIsKept) {
  Want(ModeWish::kPipelined);
  Establish();

  ASSERT_EQ(AllSent<wire::ModeChange>().size(), 1u);
  EXPECT_EQ(std::get<wire::ModeChange>(AllSent<wire::ModeChange>()[0].message.body),
            (wire::ModeChange{false, wire::Mode::kPipelined}));
}

TEST_F(DeliveryTest, NothingChangesAgainBeforeLeavingPipelinedIsAcknowledged) {
  Establish();
  Want(ModeWish::kPipelined);
  Want(ModeWish::kCombined);
  Want(ModeWish::kPipelined);
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 2u);
  ArriveCrossed(wire::Data{}, 1);
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 2u);

  solo_.Arrive(wire::Data{});

  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 3u);
}

TEST_F(DeliveryTest, BufferedIsEnteredOnceTheAdvertIsProcessedAndThenAllGoesAsData) {
  Establish();
  Advertise();
  Want(ModeWish::kBuffered);
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 0u);
  solo_.Arrive(wire::RdmaRdCompl{kLarge - 1});
  ASSERT_EQ(AllSent<wire::ModeChange>().size(), 1u);
  Advertise();
  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 1u);
  EXPECT_EQ(Gathered(AllSent<wire::Data>()), kLarge);
  Want(ModeWish::kAutomatic);
  solo_.Arrive(wire::ModeChange{true, wire::Mode::kCombined});
  Advertise();

  EXPECT_EQ(AllSent<wire::SrcAvail>().size(), 2u);
}

TEST_F(DeliveryTest, TheSinkEndsBufferedWhenALargeReceiveWaits) {
  Establish();
  solo_.Arrive(wire::ModeChange{false, wire::Mode::kBuffered});
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 0u);
  AskReceive traits;
  traits.placeable = true;
  traits.zcopy_min = 4096;
  solo_.Receive(kLarge, traits);

  ASSERT_EQ(AllSent<wire::ModeChange>().size(), 1u);
  EXPECT_EQ(std::get<wire::ModeChange>(AllSent<wire::ModeChange>()[0].message.body),
            (wire::ModeChange{true, wire::Mode::kCombined}));
}

TEST_F(DeliveryTest, RefusalsLeadDownToCombinedAndThenToBuffered) {
  Establish();
  Want(ModeWish::kAutomatic);
  Advertise();
  Advertise();
  for (int i = 0; i < 10; ++i) {
    solo_.Arrive(wire::SendSm{});
    solo_.FinishSends();
    Advertise();
  }
  std::vector<wire::Mode> modes;
  for (const Send& send : AllSent<wire::ModeChange>()) {
    modes.push_back(std::get<wire::ModeChange>(send.message.body).mode);
  }
  EXPECT_EQ(modes,
            (std::vector{wire::Mode::kPipelined, wire::Mode::kCombined, wire::Mode::kBuffered}));
}

TEST_F(DeliveryTest, ReqPipeAsksForPipelinedAndIsSetWhenSeveralLargeReceivesWait) {
  Establish();
  Advertise();
  MessageArrived completion = solo_.Next(wire::RdmaRdCompl{10});
  completion.message.base.flags = wire::kFlagReqPipe;
  solo_.Step(completion);
  EXPECT_EQ(AllSent<wire::ModeChange>().size(), 1u);
  AskReceive traits;
  traits.placeable = true;
  traits.zcopy_min = 4096;
  for (int i = 0; i < 3; ++i) solo_.Receive(kLarge, traits);
  solo_.Arrive(wire::SrcAvail{kLarge, 7, 0}, 1);
  solo_.Step(ReadFinished{});

  ASSERT_EQ(solo_.Sent<wire::RdmaRdCompl>().size(), 1u);
  EXPECT_EQ(solo_.Sent<wire::RdmaRdCompl>()[0].message.base.flags, wire::kFlagReqPipe);
}

TEST_F(DeliveryTest, WhatTheModeOfTheHalfForbidsEndsTheConnection) {
  using wire::Mode;
  struct Case {
    const char* what;
    std::vector<wire::Body> before;
    wire::Body last;
    uint32_t payload;
  };
  const wire::SrcAvail advert{kLarge, 7, 0};
  const wire::ModeChange up{false, Mode::kPipelined}, down{false, Mode::kBuffered};
  const Case cases[] = {
      {"Buffered to Pipelined", {down}, up, 0},
      {"Pipelined to Buffered", {up}, down, 0},
      {"Buffered to Combined by the source", {down}, wire::ModeChange{false, Mode::kCombined}, 0},
      {"to Buffered with a SrcAvail", {advert}, down, 0},
      {"SrcAvail in Buffered", {down}, advert, 1},
      {"two in Combined", {advert}, advert, 0},
      {"user bytes in Pipelined", {up}, advert, 1},
      {"a new one while a cancelled one is read", {up, advert, wire::SrcAvailCancel{}}, advert, 0},
      {"Data behind adverts", {up, advert, advert}, wire::Data{}, 1},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.what);
    Solo solo(SmallConfig(true));
    Solo::Peer peer;
    peer.max_adverts = 16;
    solo.Establish(peer);
    AskReceive traits;
    traits.placeable = true;
    for (const wire::Body& body : bad.before) {
      // A read that runs, or the cancel is answered at once.
      if (std::holds_alternative<wire::SrcAvailCancel>(body)) solo.Receive(kLarge - 1, traits);
      solo.Arrive(body);
    }
    ASSERT_EQ(Solo::Of<Disconnect>(solo.all()).size(), 0u);
    solo.Arrive(bad.last, bad.payload);
    ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
    EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kPeerProtocol);
  }
}

TEST_F(DeliveryTest, MoreAdvertsThanWeDeclaredEndTheConnection) {
  Establish();
  solo_.Arrive(wire::ModeChange{false, wire::Mode::kPipelined});
  for (int i = 0; i < SmallConfig(true).max_adverts; ++i) {
    solo_.Arrive(wire::SrcAvail{kLarge, 7, 0});
  }
  EXPECT_EQ(EndedWith(), Outcome::kDone);
  solo_.Arrive(wire::SrcAvail{kLarge, 7, 0});

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

// --- the peer's adverts ---

class ManyReadsTest : public DeliveryTest {
 protected:
  void Receive(uint32_t bytes, bool placeable = true) {
    AskReceive traits;
    traits.placeable = placeable;
    traits.zcopy_min = 4096;
    solo_.Receive(bytes, traits);
  }
  void Adverts(int count) {
    Establish();
    solo_.Arrive(wire::ModeChange{false, wire::Mode::kPipelined});
    for (int i = 0; i < count; ++i) {
      solo_.Arrive(wire::SrcAvail{kLarge, 7u + static_cast<uint32_t>(i), 0x4000});
    }
  }
};

TEST_F(ManyReadsTest, ReadsRunAheadOverSeveralAdvertsAndEachIsCompletedInOrder) {
  Adverts(3);
  Receive(2 * kLarge);
  const auto reads = solo_.Last<Read>();
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].source.key, 7u);
  EXPECT_EQ(reads[1].source.key, 8u);
  solo_.Step(ReadFinished{});
  EXPECT_EQ(solo_.Sent<wire::RdmaRdCompl>().size(), 1u) << "while the second is being read";
  solo_.Step(ReadFinished{});

  EXPECT_EQ(solo_.Sent<wire::RdmaRdCompl>().size(), 1u);
}

TEST_F(ManyReadsTest, ARefusalWaitsForTheCompletionOfWhatIsOlder) {
  Adverts(2);
  Receive(kLarge);
  Receive(100, /*placeable=*/false);
  EXPECT_EQ(solo_.Last<Send>().size(), 0u);
  solo_.Step(ReadFinished{});

  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<wire::RdmaRdCompl>(sends[0].message.body));
  EXPECT_TRUE(std::holds_alternative<wire::SendSm>(sends[1].message.body));
}

TEST_F(ManyReadsTest, NothingOfALaterAdvertIsReadBeforeTheWholeRemainderHasCome) {
  Adverts(2);
  Receive(100, /*placeable=*/false);
  Receive(3 * kLarge);
  EXPECT_EQ(Solo::Of<Read>(solo_.all()).size(), 0u);
  for (uint32_t i = 0; i < kLarge / 1000 - 1; ++i) solo_.Arrive(wire::Data{}, 1000);
  EXPECT_EQ(Solo::Of<Read>(solo_.all()).size(), 0u);
  solo_.Arrive(wire::Data{}, 1000);

  ASSERT_EQ(solo_.Last<Read>().size(), 1u);
  EXPECT_EQ(solo_.Last<Read>()[0].source.key, 8u);
}

TEST_F(ManyReadsTest, MoreDataThanTheRemainderIsAViolationWhileAnotherIsOutstanding) {
  Adverts(2);
  Receive(3 * kLarge, /*placeable=*/false);
  for (uint32_t i = 0; i < kLarge / 1000; ++i) solo_.Arrive(wire::Data{}, 999);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
  solo_.Arrive(wire::Data{}, 11);

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

TEST_F(ManyReadsTest, ACancelOfSeveralFinishesTheRunningReadsThenOneSendSmRevokesTheRest) {
  Adverts(3);
  Receive(kLarge + 5000);
  ASSERT_EQ(solo_.Last<Read>().size(), 2u);
  solo_.Arrive(wire::SrcAvailCancel{});
  const uint32_t cancel = 5;  // ModeChange, three adverts, the cancel
  solo_.Step(ReadFinished{});
  ASSERT_EQ(solo_.Last<Send>().size(), 1u);
  EXPECT_EQ(solo_.Last<Send>()[0].message.base.acknowledged, cancel - 1) << "held";
  solo_.Step(ReadFinished{});

  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(std::get<wire::RdmaRdCompl>(sends[0].message.body).length, 5000u);
  EXPECT_EQ(sends[0].message.base.acknowledged, cancel - 1);
  EXPECT_TRUE(std::holds_alternative<wire::SendSm>(sends[1].message.body));
  EXPECT_EQ(sends[1].message.base.acknowledged, cancel);
  solo_.Arrive(wire::Data{}, 10);
  EXPECT_EQ(EndedWith(), Outcome::kDone) << "the revoked bytes come again as Data, or never";
}

// --- as a deployed peer ---

TEST(AsDeployedTest, DeclaresOneAdvertAndNoCapabilityAndStaysCombined) {
  Config config = SmallConfig(true);
  config.as_deployed = true;
  config.mode_send = ModeWish::kPipelined;
  Solo solo(config);
  Solo::Peer peer;
  peer.max_adverts = 16;
  peer.capabilities = wire::kCapabilityInvalidate;
  solo.Establish(peer);
  const auto hello = std::get<wire::Hello>(Solo::Of<StartConnect>(solo.all())[0].hello.body);
  EXPECT_EQ(hello.max_adverts, 1u);
  EXPECT_EQ(hello.capabilities, 0u);
  AskSend traits;
  traits.exposable = true;
  traits.zcopy_min = 4096;
  solo.Send(kLarge, traits);
  solo.Send(kLarge, traits);

  size_t adverts = 0;
  for (const Send& send : Solo::Of<Send>(solo.all())) {
    EXPECT_FALSE(std::holds_alternative<wire::ModeChange>(send.message.body));
    adverts += std::holds_alternative<wire::SrcAvail>(send.message.body) ? 1u : 0u;
  }
  EXPECT_EQ(adverts, 1u);
}

// R19.1
TEST(AsDeployedTest, ItNeverInvalidatesAKeyThoughThePeerAllowsIt) {
  Config config = SmallConfig(true);
  config.as_deployed = true;
  Solo solo(config);
  Solo::Peer peer;
  peer.max_adverts = 16;
  peer.capabilities = wire::kCapabilityInvalidate;
  solo.Establish(peer);
  AskReceive traits;
  traits.placeable = true;
  solo.Receive(5000, traits);
  solo.Arrive(wire::SrcAvail{5000, 0x77, 0x4000}, 1);
  solo.Step(ReadFinished{});

  const auto completions = solo.Sent<wire::RdmaRdCompl>();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(std::get<wire::RdmaRdCompl>(completions[0].message.body).length, 4999u);
  EXPECT_FALSE(completions[0].invalidate_key);
}

}  // namespace
}  // namespace esdp::sdp::testing
