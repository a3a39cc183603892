#include <gtest/gtest.h>

#include "impl/sdp/common/limits.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::Pair;
using testing::PairOptions;
using testing::ReceiveOptions;
using testing::SendOptions;
using testing::SmallConfig;
using testing::Solo;

constexpr uint8_t kPending = wire::kFlagOobPending;
constexpr uint8_t kPresent = wire::kFlagOobPresent;
constexpr OperationId kWait{80};

AskSend Urgent(Path path = Path::kByThreshold) {
  AskSend traits;
  traits.urgent = true;
  traits.exposable = true;
  traits.path = path;
  traits.zcopy_min = 4096;
  return traits;
}

uint32_t PayloadOf(const Send& send) {
  uint32_t bytes = send.copied_bytes;
  for (uint32_t i = 0; i < send.gather_count; ++i) bytes += send.gather[i].length;
  return bytes;
}

class UrgentTest : public ::testing::Test {
 protected:
  UrgentTest() : solo_(SmallConfig(true)) {}
  void Establish(uint16_t buffers = 8, uint32_t receive_bytes = 1040) {
    Solo::Peer peer;
    peer.buffers = buffers;
    peer.receive_bytes = receive_bytes;
    solo_.Establish(peer);
  }
  std::vector<Send> Data() const { return solo_.Sent<wire::Data>(); }
  MessageArrived Flagged(const wire::Body& body, uint8_t flags, uint32_t payload) {
    MessageArrived arrived = solo_.Next(body, payload);
    arrived.message.base.flags = flags;
    return arrived;
  }
  std::string EndedWith() {
    const auto ends = Solo::Of<Disconnect>(solo_.all());
    return ends.empty() ? "" : ends[0].reason;
  }
  Solo solo_;
};

// --- sending ---

// R10.1, R10.3
TEST_F(UrgentTest, ASmallUrgentSendIsOneMessageWithBothFlags) {
  Establish();
  solo_.Send(5, Urgent());

  ASSERT_EQ(Data().size(), 1u);
  EXPECT_EQ(Data()[0].message.base.flags, kPending | kPresent);
  EXPECT_EQ(PayloadOf(Data()[0]), 5u);
}

TEST_F(UrgentTest, NothingSharesAMessageBehindTheUrgentByte) {
  Establish(4);
  solo_.Send(1024);
  solo_.Send(1024);  // takes the last credit for payload
  const OperationId urgent = solo_.Send(20, Urgent());
  solo_.Send(30);
  solo_.FinishSends();
  EXPECT_EQ(solo_.Result(urgent)->outcome, Outcome::kDone) << "copied: the memory is free";
  solo_.TellBuffers(8);
  solo_.Arrive(wire::Data{});

  ASSERT_GE(Data().size(), 1u);
  EXPECT_EQ(PayloadOf(Data()[0]), 20u);
  EXPECT_EQ(Data()[0].message.base.flags, kPresent);
  solo_.FinishSends();
  const std::vector<Send> sent = Solo::Of<Send>(solo_.all());
  EXPECT_EQ(PayloadOf(sent.back()), 30u);
  EXPECT_EQ(sent.back().message.base.flags, 0);
  EXPECT_EQ(solo_.Result(urgent)->outcome, Outcome::kDone);
}

// R10.8
TEST_F(UrgentTest, TheNoticeLeavesOnABareDataWhilePayloadWaitsForCredits) {
  Establish(4);
  solo_.Send(1024);
  solo_.Send(1024);  // two credits are left: none for payload
  solo_.Send(5, Urgent());

  ASSERT_EQ(Data().size(), 1u);
  EXPECT_EQ(Data()[0].message.base.flags, kPending);
  EXPECT_EQ(PayloadOf(Data()[0]), 0u);
  solo_.TellBuffers(8);
  solo_.FinishSends();
  solo_.Arrive(wire::Data{});
  uint8_t flags = 0;
  for (const Send& send : Solo::Of<Send>(solo_.all())) {
    if (send.message.base.flags != kPending) flags |= send.message.base.flags;
  }
  EXPECT_EQ(flags, kPresent) << "announced twice, or never sent";
}

// R10.4, R10.8
TEST_F(UrgentTest, TheAdvertOfALargeUrgentSendLeavesTheUrgentByteToAData) {
  Establish();
  solo_.Send(100'000, Urgent());
  const auto adverts = solo_.Sent<wire::SrcAvail>();
  ASSERT_EQ(adverts.size(), 1u);
  EXPECT_EQ(std::get<wire::SrcAvail>(adverts[0].message.body).length, 99'999u);
  EXPECT_EQ(adverts[0].message.base.flags, 0) << "more than 65,535 bytes ahead";
  ASSERT_EQ(Data().size(), 1u) << "the notice does not wait for the read";
  EXPECT_EQ(Data()[0].message.base.flags, kPending);

  solo_.Arrive(wire::RdmaRdCompl{99'998});

  ASSERT_EQ(Data().size(), 1u);
  EXPECT_EQ(Data()[0].message.base.flags, kPresent);
  EXPECT_EQ(PayloadOf(Data()[0]), 1u);
}

TEST_F(UrgentTest, TheAdvertItselfCarriesTheNoticeWhenItIsShortEnough) {
  Establish();
  solo_.Send(kUrgentAheadMax, Urgent());
  EXPECT_EQ(solo_.Sent<wire::SrcAvail>().at(0).message.base.flags, kPending);
  EXPECT_TRUE(Data().empty());
}

TEST_F(UrgentTest, AnUrgentByteAloneIsNeverAdvertised) {
  Establish();
  AskSend always = Urgent(Path::kZeroCopy);
  always.zcopy_min = 0;
  for (const uint32_t bytes : {1u, 2u}) {
    solo_.Send(bytes, always);
    EXPECT_TRUE(solo_.Sent<wire::SrcAvail>().empty());
    EXPECT_EQ(Data().at(0).message.base.flags, kPending | kPresent);
    solo_.FinishSends();
  }
}

// R10.1, R10.2
TEST_F(UrgentTest, NoNoticeIsMoreThan65535BytesAheadAndNoneComesLate) {
  for (const uint32_t receive_bytes : {1040u, 16'400u, 300'016u}) {
    Solo solo(SmallConfig(true));
    Solo::Peer peer;
    peer.buffers = 400;
    peer.receive_bytes = receive_bytes;
    solo.TellBuffers(400);
    solo.Establish(peer);
    solo.Send(150'000, Urgent(Path::kCopy));
    for (int i = 0; i < 10; ++i) solo.FinishSends();
    uint64_t before = 0;
    int notices = 0;
    for (const Send& send : Solo::Of<Send>(solo.all())) {
      if ((send.message.base.flags & kPending) != 0) {
        ++notices;
        EXPECT_LE(150'000 - before, kUrgentAheadMax);
        EXPECT_GT(150'000 - before + receive_bytes, kUrgentAheadMax) << "later than it may";
      }
      before += PayloadOf(send);
      EXPECT_EQ((send.message.base.flags & kPresent) != 0, before == 150'000);
    }
    EXPECT_EQ(notices, 1) << receive_bytes;
    EXPECT_EQ(before, 150'000u);
  }
}

// R10.1
TEST_F(UrgentTest, ASecondUrgentByteIsAnnouncedBehindTheFirst) {
  Establish(4);
  solo_.Send(1024);
  solo_.Send(1024);
  solo_.Send(5, Urgent());
  solo_.Send(6, Urgent());
  EXPECT_TRUE(Data().empty()) << "the first is announced and has not left";
  solo_.TellBuffers(8);
  solo_.FinishSends();
  solo_.Arrive(wire::Data{});

  ASSERT_EQ(Data().size(), 2u);
  EXPECT_EQ(Data()[0].message.base.flags, kPresent);
  EXPECT_EQ(Data()[1].message.base.flags, kPending | kPresent);
}

TEST_F(UrgentTest, AnAnnouncedSendCanNoLongerBeTakenBackAndAnotherCan) {
  Establish(3);
  solo_.Send(1000);
  AskSend gathered = Urgent(Path::kCopy);
  const OperationId announced = solo_.Send(3000, gathered);
  const OperationId behind = solo_.Send(3000, gathered);

  solo_.Step(AskCancel{announced, CancelMode::kIfNotStarted, Outcome::kCancelled});
  solo_.Step(AskCancel{behind, CancelMode::kIfNotStarted, Outcome::kCancelled});

  EXPECT_FALSE(solo_.Result(announced));
  EXPECT_EQ(solo_.Result(behind)->outcome, Outcome::kCancelled);
  solo_.Step(AskCancel{announced, CancelMode::kAbortConnection, Outcome::kDeadlineExceeded});
  EXPECT_EQ(Solo::Of<Disconnect>(solo_.all()).at(0).cause, Outcome::kLocalAbort);
}

// --- receiving ---

// R10.6
TEST_F(UrgentTest, AReceiveEndsWithTheUrgentByteAlsoOneThatWaitsForAll) {
  Establish();
  AskReceive all;
  all.wait_all = true;
  const OperationId first = solo_.Receive(100, all);
  const OperationId second = solo_.Receive(100);
  solo_.Step(Flagged(wire::Data{}, kPending | kPresent, 40));
  solo_.Arrive(wire::Data{}, 30);

  EXPECT_EQ(solo_.Result(first)->bytes, 40u);
  EXPECT_TRUE(solo_.Result(first)->urgent);
  EXPECT_EQ(solo_.Result(second)->bytes, 30u);
  EXPECT_EQ(solo_.Result(second)->stream_offset, 40u);
  EXPECT_FALSE(solo_.Result(second)->urgent);
}

TEST_F(UrgentTest, OnlyTheReceiveThatGetsTheLastByteIsMarked) {
  Establish();
  solo_.Step(Flagged(wire::Data{}, kPresent, 40));
  const OperationId first = solo_.Receive(39);
  const OperationId second = solo_.Receive(39);

  EXPECT_FALSE(solo_.Result(first)->urgent);
  EXPECT_TRUE(solo_.Result(second)->urgent);
  EXPECT_EQ(solo_.Result(second)->bytes, 1u);
}

// R10.5, R10.7
TEST_F(UrgentTest, ANoticeIsHeardBeforeTheByteAndOnce) {
  Establish();
  solo_.Step(AskUrgent{kWait});
  EXPECT_FALSE(solo_.Result(kWait));
  solo_.Step(Flagged(wire::Data{}, kPending, 0));
  EXPECT_TRUE(solo_.Result(kWait)->urgent);

  solo_.Step(AskUrgent{OperationId{81}});
  solo_.Step(Flagged(wire::Data{}, kPresent, 8));
  EXPECT_FALSE(solo_.Result(OperationId{81})) << "the same byte";
  solo_.Step(Flagged(wire::Data{}, kPresent | kPending, 8));
  EXPECT_TRUE(solo_.Result(OperationId{81})->urgent);
}

TEST_F(UrgentTest, ANoticeThatNobodyWaitsForIsKeptForTheNextToAsk) {
  Establish();
  solo_.Step(Flagged(wire::Data{}, kPresent, 8));
  solo_.Step(Flagged(wire::RdmaRdCompl{}, 0, 0));
  Solo quiet(SmallConfig(true));
  quiet.Establish();
  MessageArrived both = quiet.Next(wire::Data{}, 8);
  both.message.base.flags = kPending | kPresent;
  quiet.Step(both);
  quiet.Step(AskUrgent{kWait});
  quiet.Step(AskUrgent{OperationId{81}});

  EXPECT_TRUE(quiet.Result(kWait)->urgent);
  EXPECT_FALSE(quiet.Result(OperationId{81}));
}

TEST_F(UrgentTest, WhoWaitsEndsWithTheStreamWithItsCancelAndWithTheConnection) {
  Establish();
  solo_.Step(AskUrgent{kWait});
  solo_.Step(AskCancel{kWait, CancelMode::kIfNotStarted, Outcome::kDeadlineExceeded});
  EXPECT_EQ(solo_.Result(kWait)->outcome, Outcome::kDeadlineExceeded);
  solo_.Step(AskUrgent{OperationId{81}});
  solo_.Arrive(wire::DisConn{});
  EXPECT_TRUE(solo_.Result(OperationId{81})->end_of_stream);
  solo_.Step(AskUrgent{OperationId{82}});
  EXPECT_TRUE(solo_.Result(OperationId{82})->end_of_stream);

  Solo reset(SmallConfig(true));
  reset.Establish();
  reset.Step(AskUrgent{kWait});
  reset.Step(ConnectionLost{});
  EXPECT_EQ(reset.Result(kWait)->outcome, Outcome::kPeerReset);
  Solo closed(SmallConfig(true));
  closed.Establish();
  closed.Step(AskUrgent{kWait});
  closed.Step(AskClose{OperationId{90}, false});
  EXPECT_EQ(closed.Result(kWait)->outcome, Outcome::kShutDown);
  closed.Step(AskUrgent{OperationId{81}});
  EXPECT_EQ(closed.Result(OperationId{81})->outcome, Outcome::kShutDown);
}

// --- a peer that breaks the rules ---

// R10.4
TEST_F(UrgentTest, OobPresWithoutAByteToMarkEndsTheConnection) {
  const wire::Body bodies[] = {wire::Data{}, wire::SendSm{}, wire::DisConn{}, wire::ChRcvBuf{64}};
  for (const wire::Body& body : bodies) {
    Solo solo(SmallConfig(true));
    solo.Establish();
    MessageArrived arrived = solo.Next(body);
    arrived.message.base.flags = kPresent;
    solo.Step(arrived);
    ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
    EXPECT_STREQ(solo.Last<Disconnect>()[0].reason, "OOB_PRES: the message carries no urgent byte");
  }
}

// R10.4
TEST_F(UrgentTest, OobPresOnAnAdvertEndsTheConnection) {
  Establish();
  solo_.Step(Flagged(wire::SrcAvail{1000, 7, 0x1000}, kPresent, 1));
  EXPECT_EQ(EndedWith(), "OOB_PRES: the message carries no urgent byte");
}

// R10.1
TEST_F(UrgentTest, OobPendTwiceForOneByteEndsTheConnection) {
  Establish();
  solo_.Step(Flagged(wire::Data{}, kPending, 10));
  solo_.Step(Flagged(wire::Data{}, kPending, 10));
  EXPECT_EQ(EndedWith(), "OOB_PEND: an urgent byte is announced already");
}

// R10.1
TEST_F(UrgentTest, OobPendRidesOnAnyMessage) {
  Establish();
  solo_.Step(AskUrgent{kWait});
  solo_.Step(Flagged(wire::SrcAvail{1000, 7, 0x1000}, kPending, 1));
  EXPECT_TRUE(solo_.Result(kWait)->urgent);
  EXPECT_EQ(EndedWith(), "");
}

// --- both ends ---

// R10.6
TEST(UrgentPairTest, TheMarkIsAtTheByteWhateverPathTheBytesTake) {
  for (const uint32_t bytes : {1u, 2u, 100u, 1024u, 3000u, 100'000u}) {
    PairOptions options;
    options.a = SmallConfig(true);
    options.b = SmallConfig(false);
    Pair pair(options, bytes);
    pair.Connect();
    SendOptions send;
    send.zcopy_min = 4096;
    send.pieces = {700};
    pair.a.AskToSend(send);
    send.urgent = true;
    send.pieces = {bytes};
    pair.a.AskToSend(send);
    pair.a.AskToSend(send);
    const OperationId wait = pair.b.AskToAwaitUrgent();
    for (int i = 0; i < 12; ++i) {
      ReceiveOptions receive;
      receive.pieces = {200'000};
      receive.zcopy_min = 4096;
      pair.b.AskToReceive(receive);
      pair.Settle();
    }
    EXPECT_EQ(pair.b.received_urgent(), (std::vector<uint64_t>{699 + bytes, 699 + 2 * bytes}));
    EXPECT_TRUE(pair.b.operation(wait).result->urgent);
  }
}

}  // namespace
}  // namespace esdp::sdp
