#include "impl/sdp/inbound/advert_reader.h"

#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

class AdvertReaderTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLength = 10000;

  AdvertReaderTest() : solo_(SmallConfig(true)) {}

  void Advert(uint32_t inline_bytes, uint32_t length = kLength) {
    solo_.Arrive(wire::SrcAvail{length, 0x77, 0x4000}, inline_bytes);
  }
  OperationId ReceiveWith(uint32_t bytes, bool wait_all = false, bool placeable = true) {
    AskReceive traits;
    traits.placeable = placeable;
    traits.wait_all = wait_all;
    traits.zcopy_min = 4096;
    return solo_.Receive(bytes, traits);
  }
  Outcome EndedWith() {
    const auto ends = Solo::Of<Disconnect>(solo_.all());
    return ends.empty() ? Outcome::kDone : ends[0].cause;
  }

  Solo solo_;
};

// R7.1.3
TEST_F(AdvertReaderTest, AnAdvertIsHeldUntilAReceiveIsPosted) {
  solo_.Establish();
  Advert(1);
  EXPECT_EQ(solo_.Last<Read>().size() + solo_.Last<Send>().size(), 0u);

  ReceiveWith(kLength);

  EXPECT_EQ(solo_.Last<Read>().size(), 1u);
}

// R7.1.2, R7.1.5
TEST_F(AdvertReaderTest, FewInlineBytesAreReadAgainWithTheRestAndNothingIsCopied) {
  solo_.Establish();
  const OperationId receive = ReceiveWith(20000);
  Advert(1);
  ASSERT_EQ(solo_.Last<Read>().size(), 1u);
  EXPECT_EQ(solo_.Last<Read>()[0].source.address, 0x4000u);
  EXPECT_EQ(solo_.Last<Read>()[0].target.length, kLength);
  EXPECT_EQ(solo_.Last<CopyIn>().size(), 0u);

  solo_.Step(ReadFinished{});

  const auto answers = solo_.Sent<wire::RdmaRdCompl>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<wire::RdmaRdCompl>(answers[0].message.body).length, kLength - 1)
      << "the inline bytes never count";
  EXPECT_EQ(solo_.Result(receive)->bytes_zero_copy, kLength);
}

// R7.1.2, R7.1.5
TEST_F(AdvertReaderTest, ManyInlineBytesAreUsedAndTheRestIsRead) {
  solo_.Establish();
  const OperationId receive = ReceiveWith(20000);
  Advert(64);
  EXPECT_EQ(solo_.Last<CopyIn>().size(), 1u);
  ASSERT_EQ(solo_.Last<Read>().size(), 1u);
  EXPECT_EQ(solo_.Last<Read>()[0].source.address, 0x4000u + 64);

  solo_.Step(ReadFinished{});

  EXPECT_EQ(solo_.Result(receive)->bytes, kLength);
  EXPECT_EQ(solo_.Result(receive)->bytes_zero_copy, kLength - 64);
}

// R7.1.10
TEST_F(AdvertReaderTest, AnAdvertWithoutInlineBytesIsReadWhole) {
  solo_.Establish();
  ReceiveWith(20000);
  Advert(0);
  solo_.Step(ReadFinished{});

  const auto answers = solo_.Sent<wire::RdmaRdCompl>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<wire::RdmaRdCompl>(answers[0].message.body).length, kLength);
}

// R7.1.4
TEST_F(AdvertReaderTest, TheCompletionLeavesOnlyOnceTheReadIsDone) {
  solo_.Establish();
  ReceiveWith(20000);
  Advert(1);
  EXPECT_EQ(Solo::Of<Send>(solo_.all()).size(), 0u);

  solo_.Step(ReadFinished{});

  EXPECT_EQ(solo_.Sent<wire::RdmaRdCompl>().size(), 1u);
}

// R25.3
TEST_F(AdvertReaderTest, ReadsAreSplitAndNoMoreAreInFlightThanNegotiated) {
  Config config = SmallConfig(true);
  config.read_bytes_max = 3000;
  Solo solo(config);
  Solo::Peer peer;
  peer.reads_out = 2;
  solo.Establish(peer);
  AskReceive traits;
  traits.placeable = true;
  solo.Receive(20000, traits);
  solo.Arrive(wire::SrcAvail{kLength, 0x77, 0x4000}, 1);
  ASSERT_EQ(solo.Last<Read>().size(), 2u);
  EXPECT_EQ(solo.Last<Read>()[1].source.address, 0x4000u + 3000);

  solo.Step(ReadFinished{});
  EXPECT_EQ(solo.Last<Read>().size(), 1u);
  EXPECT_EQ(solo.Last<Send>().size(), 0u);
  solo.Step(ReadFinished{});
  EXPECT_EQ(solo.Last<Read>()[0].target.length, 1000u);
  solo.Step(ReadFinished{});
  solo.Step(ReadFinished{});

  EXPECT_EQ(solo.Sent<wire::RdmaRdCompl>().size(), 1u);
}

TEST_F(AdvertReaderTest, ReadsRunAheadByTwoOrByTheBytesThatAreAllowed) {
  for (const uint64_t ahead : {uint64_t{1}, uint64_t{2500}, uint64_t{3001}, ~uint64_t{0}}) {
    Config config = SmallConfig(true);
    config.read_bytes_max = 1000;
    config.read_ahead_bytes = ahead;
    Solo solo(config);
    solo.Establish();
    AskReceive traits;
    traits.placeable = true;
    solo.Receive(20000, traits);
    solo.Arrive(wire::SrcAvail{kLength, 0x77, 0x4000}, 1);
    EXPECT_EQ(solo.Last<Read>().size(), ahead == 1 ? 2u : ahead == 2500 ? 3u : 4u) << ahead;
    solo.Step(ReadFinished{});
    EXPECT_EQ(solo.Last<Read>().size(), 1u) << "for each that is done";
  }
}

TEST_F(AdvertReaderTest, SeveralReceivesAreFilledFromOneAdvertWithReadsInFlightTogether) {
  solo_.Establish();
  const OperationId first = ReceiveWith(5000);
  const OperationId second = ReceiveWith(6000);
  Advert(1);
  EXPECT_EQ(solo_.Last<Read>().size(), 2u);
  solo_.Step(ReadFinished{});
  EXPECT_EQ(solo_.Result(first)->bytes, 5000u);
  EXPECT_FALSE(solo_.Result(second));

  solo_.Step(ReadFinished{});

  EXPECT_EQ(solo_.Result(second)->bytes, 5000u);
  EXPECT_EQ(Solo::Of<Send>(solo_.all()).size(), 1u) << "one completion for both";
}

// R7.1.5, R7.1.6
TEST_F(AdvertReaderTest, APartialReadIsReportedWhenNoReceiveIsLeftAndCompletedLater) {
  solo_.Establish();
  ReceiveWith(5000);
  Advert(1);
  solo_.Step(ReadFinished{});
  ASSERT_EQ(solo_.Sent<wire::RdmaRdCompl>().size(), 1u);
  EXPECT_EQ(std::get<wire::RdmaRdCompl>(solo_.Sent<wire::RdmaRdCompl>()[0].message.body).length,
            4999u);
  ReceiveWith(20000);
  solo_.Step(ReadFinished{});

  EXPECT_EQ(std::get<wire::RdmaRdCompl>(solo_.Sent<wire::RdmaRdCompl>()[0].message.body).length,
            5000u);
}

// R3.4.2, R16.2
TEST_F(AdvertReaderTest, OnlyTheCompletingMessageInvalidatesTheKeyAndOnlyIfThePeerAllows) {
  for (const bool allows : {true, false}) {
    Solo solo(SmallConfig(true));
    Solo::Peer peer;
    peer.max_adverts = 16;
    peer.capabilities = allows ? wire::kCapabilityInvalidate : uint8_t{0};
    solo.Establish(peer);
    AskReceive traits;
    traits.placeable = true;
    solo.Receive(5000, traits);
    solo.Arrive(wire::SrcAvail{kLength, 0x77, 0x4000}, 1);
    solo.Step(ReadFinished{});
    EXPECT_FALSE(solo.Sent<wire::RdmaRdCompl>()[0].invalidate_key);
    solo.Receive(5000, traits);
    solo.Step(ReadFinished{});

    const auto last = solo.Sent<wire::RdmaRdCompl>()[0];
    EXPECT_EQ(last.invalidate_key.has_value(), allows);
    if (allows) {
      EXPECT_EQ(*last.invalidate_key, 0x77u);
    }
  }
}

// R6.2, R7.1.2
TEST_F(AdvertReaderTest, AReceiveTooSmallIsServedBySendSmAndTheInlineBytes) {
  solo_.Establish();
  const OperationId receive = ReceiveWith(3000);
  Advert(1);
  EXPECT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
  EXPECT_EQ(solo_.Last<CopyIn>().size(), 1u) << "the inline byte is not sent again";
  EXPECT_FALSE(solo_.Result(receive)) << "the rest is certain to come";

  solo_.Arrive(wire::Data{}, 1000);
  solo_.Arrive(wire::Data{}, 1000);
  solo_.Arrive(wire::Data{}, 1000);

  EXPECT_EQ(solo_.Result(receive)->bytes, 3000u);
}

// R6.2, R25.3
TEST_F(AdvertReaderTest, WithoutReadsEveryAdvertIsAnsweredBySendSm) {
  Solo::Peer peer;
  peer.reads_out = 0;
  solo_.Establish(peer);
  ReceiveWith(20000);
  Advert(1);

  EXPECT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
}

// R7.2.5
TEST_F(AdvertReaderTest, AfterPartialReadsTheCompletionGoesBeforeSendSm) {
  solo_.Establish();
  ReceiveWith(5000);
  ReceiveWith(100, false, /*placeable=*/false);
  Advert(1);
  EXPECT_EQ(solo_.Last<Send>().size(), 0u) << "the read is still running";

  solo_.Step(ReadFinished{});

  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<wire::RdmaRdCompl>(sends[0].message.body));
  EXPECT_TRUE(std::holds_alternative<wire::SendSm>(sends[1].message.body));
}

TEST_F(AdvertReaderTest, AReceiveWithBytesEndsShortInsteadOfRefusingAnAdvert) {
  solo_.Establish();
  const OperationId first = ReceiveWith(500);
  solo_.Arrive(wire::Data{}, 100);
  EXPECT_EQ(solo_.Result(first)->bytes, 100u);
  solo_.Arrive(wire::Data{}, 100);
  Advert(1);
  const OperationId second = ReceiveWith(500);
  EXPECT_EQ(solo_.Result(second)->bytes, 100u);
  EXPECT_EQ(solo_.Last<Send>().size(), 0u) << "the next receive may be large enough";

  ReceiveWith(20000);

  EXPECT_EQ(solo_.Last<Read>().size(), 1u);
}

// R15.1
TEST_F(AdvertReaderTest, BothSidesAdvertisingWithoutAReceiveIsBrokenByTakingOursBack) {
  solo_.Establish();
  AskSend traits;
  traits.exposable = true;
  traits.zcopy_min = 4096;
  solo_.Send(10000, traits);
  ASSERT_EQ(solo_.Sent<wire::SrcAvail>().size(), 1u);

  Advert(1);

  EXPECT_EQ(solo_.Sent<wire::SrcAvailCancel>().size(), 1u);
  solo_.Arrive(wire::SendSm{});
  EXPECT_EQ(solo_.Last<Withdraw>().size(), 1u);
  EXPECT_EQ(solo_.Sent<wire::SrcAvail>().size(), 0u) << "it would close the circle again";
  EXPECT_GT(solo_.Sent<wire::Data>().size(), 0u);
}

// R15.1: advertised anew, they could meet again and again, each time for a buffer and a byte.
TEST_F(AdvertReaderTest, WhenBothTakeTheirsBackNeitherAdvertisesItAgain) {
  solo_.Establish();
  AskSend traits;
  traits.exposable = true;
  traits.zcopy_min = 4096;
  solo_.Send(10000, traits);
  Advert(1);
  ASSERT_EQ(solo_.Sent<wire::SrcAvailCancel>().size(), 1u);
  solo_.Arrive(wire::SrcAvailCancel{});

  solo_.Arrive(wire::SendSm{});

  EXPECT_EQ(solo_.Last<Expose>().size(), 0u);
  EXPECT_GT(solo_.Sent<wire::Data>().size(), 0u);
}

TEST_F(AdvertReaderTest, IllegalAdvertsEndTheConnection) {
  struct Case {
    const char* what;
    wire::SrcAvail advert;
    uint32_t inline_bytes;
  };
  const Case cases[] = {
      {"no length", {0, 1, 0}, 0},
      {"above 2^31", {(1u << 31) + 1, 1, 0}, 1},
      {"wraps", {4096, 1, ~uint64_t{0} - 4000}, 1},
      {"nothing beside the inline bytes", {10, 1, 0}, 10},
      {"more inline than in all", {10, 1, 0}, 11},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.what);
    Solo solo(SmallConfig(true));
    solo.Establish();
    solo.Arrive(bad.advert, bad.inline_bytes);
    ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
    EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kPeerProtocol);
    EXPECT_EQ(solo.Last<Read>().size(), 0u);
  }
}

TEST_F(AdvertReaderTest, ARangeUpToTheEndOfTheAddressSpaceIsLegal) {
  solo_.Establish();
  ReceiveWith(20000);
  solo_.Arrive(wire::SrcAvail{4096, 1, ~uint64_t{0} - 4095}, 1);

  EXPECT_EQ(EndedWith(), Outcome::kDone);
  EXPECT_EQ(solo_.Last<Read>().size(), 1u);
}

// R5.14
TEST_F(AdvertReaderTest, ASecondAdvertWhileOneIsOutstandingEndsTheConnection) {
  solo_.Establish();
  Advert(1);
  Advert(1);

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

// R17.4
TEST_F(AdvertReaderTest, DataWhileAnAdvertIsOutstandingEndsTheConnection) {
  solo_.Establish();
  Advert(1);
  solo_.Arrive(wire::Data{});
  EXPECT_EQ(EndedWith(), Outcome::kDone) << "a bare one is always legal";

  solo_.Arrive(wire::Data{}, 1);

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

// R7.4.5
TEST_F(AdvertReaderTest, ACancelOfAnUntouchedAdvertIsAnsweredByOneSendSmAndNoDataIsExpected) {
  solo_.Establish();
  Advert(1);

  solo_.Arrive(wire::SrcAvailCancel{});

  ASSERT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
  EXPECT_EQ(solo_.Sent<wire::SendSm>()[0].message.base.acknowledged, 2u);
  const OperationId receive = ReceiveWith(100);
  EXPECT_EQ(solo_.Result(receive)->bytes, 1u) << "the inline byte was part of the stream";
  Advert(1);
  EXPECT_EQ(EndedWith(), Outcome::kDone) << "the next advert is welcome";
}

// R7.4.3, R7.4.4
TEST_F(AdvertReaderTest, ACancelWaitsForTheRunningReadAndIsNotAcknowledgedBefore) {
  solo_.Establish();
  ReceiveWith(5000);
  Advert(1);
  solo_.Arrive(wire::SrcAvailCancel{});
  EXPECT_EQ(solo_.Last<Send>().size(), 0u);
  ReceiveWith(20000);
  EXPECT_EQ(solo_.Last<Read>().size(), 0u) << "no new read is started";

  solo_.Step(ReadFinished{});

  const auto sends = solo_.Last<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(std::get<wire::RdmaRdCompl>(sends[0].message.body).length, 4999u);
  EXPECT_EQ(sends[0].message.base.acknowledged, 1u) << "held below the cancel";
  EXPECT_TRUE(std::holds_alternative<wire::SendSm>(sends[1].message.body));
  EXPECT_EQ(sends[1].message.base.acknowledged, 2u);
}

// R7.4.5
TEST_F(AdvertReaderTest, ACancelThatFindsTheWholeAdvertReadGetsNoSendSm) {
  solo_.Establish();
  ReceiveWith(20000);
  Advert(1);
  solo_.Arrive(wire::SrcAvailCancel{});
  solo_.Step(ReadFinished{});
  EXPECT_EQ(solo_.Last<Send>().size(), 1u);
  EXPECT_EQ(solo_.Sent<wire::RdmaRdCompl>().size(), 1u);

  solo_.Send(5);

  EXPECT_EQ(solo_.Last<Send>()[0].message.base.acknowledged, 2u) << "the hold is over";
}

// R7.2.1, R7.4.2
TEST_F(AdvertReaderTest, ACancelThatCrossedOurSendSmIsIgnoredAndTheRemainderStillComes) {
  solo_.Establish();
  const OperationId receive = ReceiveWith(3000, /*wait_all=*/true);
  Advert(1, 3500);
  ASSERT_EQ(solo_.Sent<wire::SendSm>().size(), 1u);
  solo_.Arrive(wire::SrcAvailCancel{});
  EXPECT_EQ(solo_.Sent<wire::SendSm>().size(), 0u);

  for (int i = 0; i < 4; ++i) solo_.Arrive(wire::Data{}, 800);

  EXPECT_EQ(solo_.Result(receive)->bytes, 3000u);
}

// R7.4.2
TEST_F(AdvertReaderTest, ACancelOfNothingIsIgnored) {
  solo_.Establish();
  solo_.Arrive(wire::SrcAvailCancel{});

  EXPECT_EQ(solo_.Last<Send>().size(), 0u);
  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

}  // namespace
}  // namespace esdp::sdp
