#include "impl/sdp/outbound/source_adverts.h"

#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

class SourceAdvertsTest : public ::testing::Test {
 protected:
  SourceAdvertsTest() : solo_(SmallConfig(true)) {}

  // A send of 10000 bytes, advertised.
  OperationId Advertise() {
    AskSend traits;
    traits.exposable = true;
    traits.zcopy_min = 4096;
    return solo_.Send(10000, traits);
  }
  void Withdrawn(uint32_t advert = 0) { solo_.Step(esdp::sdp::Withdrawn{AdvertId{advert}}); }
  Outcome EndedWith() {
    const auto ends = Solo::Of<Disconnect>(solo_.all());
    return ends.empty() ? Outcome::kDone : ends[0].cause;
  }

  Solo solo_;
};

// R5.8, R7.1.1
TEST_F(SourceAdvertsTest, CarriesExactlyOneInlineByteAndTheKeyOfItsExposure) {
  solo_.Establish();
  Advertise();

  ASSERT_EQ(solo_.Sent<wire::SrcAvail>().size(), 1u);
  const Send send = solo_.Sent<wire::SrcAvail>()[0];
  const auto& advert = std::get<wire::SrcAvail>(send.message.body);
  EXPECT_EQ(advert.length, 10000u);
  EXPECT_EQ(advert.remote_key, 0x500u);
  EXPECT_EQ(advert.virtual_address, 0x10000u);
  EXPECT_EQ(send.gather_count, 1u);
  EXPECT_EQ(send.gather[0].length, 1u);
  EXPECT_EQ(solo_.Last<Expose>()[0].range.length, 10000u);
}

// R4.1.3, R7.1.1
TEST_F(SourceAdvertsTest, TakesItsSequenceNumberOnlyOnceTheMemoryIsExposed) {
  solo_.exposes = false;
  solo_.Establish();
  Advertise();

  EXPECT_EQ(solo_.Sent<wire::SrcAvail>().size(), 0u);
  const auto data = solo_.Sent<wire::Data>();
  ASSERT_GT(data.size(), 0u) << "what cannot be exposed is copied";
  EXPECT_EQ(data[0].message.base.sequence, 1u);
  EXPECT_EQ(solo_.core().counters().expose_failures, 1u);
}

// R5.9
TEST_F(SourceAdvertsTest, NoPayloadFollowsWhileItIsOutstanding) {
  solo_.Establish();
  Advertise();
  solo_.Send(10);
  Advertise();
  solo_.FinishSends();

  EXPECT_EQ(Solo::Of<Send>(solo_.all()).size(), 1u);
}

TEST_F(SourceAdvertsTest, NoneIsSentWithTwoCredits) {
  Solo::Peer peer;
  peer.buffers = 3;
  solo_.Establish(peer);
  solo_.Send(10);
  solo_.FinishSends();
  ASSERT_EQ(Solo::Of<Send>(solo_.all()).size(), 1u);

  Advertise();

  EXPECT_EQ(solo_.Last<Expose>().size(), 0u);
  EXPECT_EQ(solo_.core().counters().credit_stalls, 1u);
}

// R7.1.7, R7.1.9
TEST_F(SourceAdvertsTest, IsFinishedWhenPartialReadsAndTheInlineByteMakeItsLength) {
  solo_.Establish();
  const OperationId send = Advertise();
  solo_.FinishSends();
  solo_.Arrive(wire::RdmaRdCompl{4000});
  EXPECT_EQ(solo_.Last<Withdraw>().size(), 0u);

  solo_.Arrive(wire::RdmaRdCompl{5999});

  ASSERT_EQ(solo_.Last<Withdraw>().size(), 1u);
  EXPECT_FALSE(solo_.Last<Withdraw>()[0].already_invalidated);
  EXPECT_FALSE(solo_.Result(send)) << "the key still lives";
  Withdrawn();
  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kDone);
  EXPECT_EQ(solo_.Result(send)->bytes, 10000u);
  EXPECT_EQ(solo_.Result(send)->bytes_zero_copy, 10000u);
}

TEST_F(SourceAdvertsTest, DoesNotFinishBeforeItsOwnSendHasLeft) {
  solo_.Establish();
  const OperationId send = Advertise();
  solo_.Arrive(wire::RdmaRdCompl{9999});
  Withdrawn();
  EXPECT_FALSE(solo_.Result(send)) << "its inline byte is still being gathered";

  solo_.FinishSends();

  EXPECT_TRUE(solo_.Result(send));
}

// R7.1.8
TEST_F(SourceAdvertsTest, MoreThanIsLeftIsAViolation) {
  solo_.Establish();
  Advertise();

  solo_.Arrive(wire::RdmaRdCompl{10000});

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

// R17.6
TEST_F(SourceAdvertsTest, ACompletionOfNoAdvertIsAViolation) {
  solo_.Establish();

  solo_.Arrive(wire::RdmaRdCompl{1});

  EXPECT_EQ(EndedWith(), Outcome::kPeerProtocol);
}

// R7.2.6
TEST_F(SourceAdvertsTest, SendSmWithNoAdvertIsIgnored) {
  solo_.Establish();

  solo_.Arrive(wire::SendSm{});

  EXPECT_EQ(EndedWith(), Outcome::kDone);
}

// R7.2.2
TEST_F(SourceAdvertsTest, SendSmIsAnsweredByExactlyTheRemainingBytes) {
  solo_.TellBuffers(64);
  Solo::Peer peer;
  peer.buffers = 64;
  solo_.Establish(peer);
  const OperationId send = Advertise();
  solo_.Send(100);
  solo_.Arrive(wire::RdmaRdCompl{4096});
  solo_.Arrive(wire::SendSm{});
  EXPECT_EQ(solo_.Last<Withdraw>().size(), 1u);
  uint64_t remaining = 0, messages = 0;
  for (const Send& data : solo_.Sent<wire::Data>()) {
    if (data.gather_count == 0) break;
    remaining += data.gather[0].length;
    EXPECT_EQ(data.gather_count, 1u);
    EXPECT_EQ(data.gather[0].operation, send);
    ++messages;
  }

  EXPECT_EQ(remaining, 10000u - 1 - 4096);
  EXPECT_EQ(messages, (10000u - 1 - 4096 + 1023) / 1024);
  solo_.FinishSends();
  EXPECT_FALSE(solo_.Result(send));
  Withdrawn();
  EXPECT_EQ(solo_.Result(send)->bytes, 10000u);
  EXPECT_EQ(solo_.Result(send)->bytes_zero_copy, 4096u);
}

// R16.2
TEST_F(SourceAdvertsTest, APeersInvalidateOfItsKeyStandsInForOurs) {
  solo_.Establish();
  Advertise();
  MessageArrived completion = solo_.Next(wire::RdmaRdCompl{9999});
  completion.invalidated_key = 0x500;

  solo_.Step(completion);

  ASSERT_EQ(solo_.Last<Withdraw>().size(), 1u);
  EXPECT_TRUE(solo_.Last<Withdraw>()[0].already_invalidated);
}

// R16.3
TEST_F(SourceAdvertsTest, AnInvalidateOfAnotherKeyOrTooEarlyEndsTheConnection) {
  struct Case {
    uint32_t key, bytes;
  };
  for (const Case& bad : {Case{0x501, 9999}, Case{0x500, 9998}}) {
    Solo solo(SmallConfig(true));
    solo.Establish();
    AskSend traits;
    traits.exposable = true;
    traits.zcopy_min = 4096;
    solo.Send(10000, traits);
    MessageArrived completion = solo.Next(wire::RdmaRdCompl{bad.bytes});
    completion.invalidated_key = bad.key;

    solo.Step(completion);

    EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kPeerProtocol);
  }
}

// R16.3
TEST_F(SourceAdvertsTest, AnInvalidateThatWeDidNotOfferEndsTheConnection) {
  Config config = SmallConfig(true);
  config.remote_invalidate = false;
  Solo solo(config);
  solo.Establish();
  AskSend traits;
  traits.exposable = true;
  traits.zcopy_min = 4096;
  solo.Send(10000, traits);
  MessageArrived completion = solo.Next(wire::RdmaRdCompl{9999});
  completion.invalidated_key = 0x500;

  solo.Step(completion);

  EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kPeerProtocol);
}

TEST_F(SourceAdvertsTest, ExposedMemoryIsKeptUntilTheConnectionIsLost) {
  solo_.Establish();
  const OperationId send = Advertise();
  solo_.FinishSends();
  solo_.Step(MessageRefused{"garbage"});
  EXPECT_FALSE(solo_.Result(send));

  solo_.Step(ConnectionLost{});

  EXPECT_EQ(solo_.Result(send)->outcome, Outcome::kPeerProtocol);
}

// R25.3
TEST_F(SourceAdvertsTest, NothingIsAdvertisedToAPeerThatMayNotRead) {
  Solo::Peer peer;
  peer.reads_in = 0;
  solo_.Establish(peer);
  Advertise();

  EXPECT_EQ(solo_.Last<Expose>().size(), 0u);
  EXPECT_GT(solo_.Sent<wire::Data>().size(), 0u);
}

}  // namespace
}  // namespace esdp::sdp
