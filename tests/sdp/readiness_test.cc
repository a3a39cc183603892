#include "impl/sdp/interface/readiness.h"

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include "tests/sdp/delivery.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {

// For messages of failed expectations.
void PrintTo(const Readiness& it, std::ostream* out) {
  *out << (it.readable ? " readable" : "") << (it.writable ? " writable" : "")
       << (it.urgent ? " urgent" : "") << (it.ended ? " ended" : "");
}

namespace {

using testing::DeliveryTest;
using testing::kLarge;
using testing::SmallConfig;
using testing::Solo;

constexpr Readiness kWritable{.writable = true};

class ReadinessTest : public DeliveryTest {
 protected:
  // What the last step reported; nothing, where it told of no change.
  std::vector<Readiness> Told() const {
    std::vector<Readiness> told;
    for (const ReportReadiness& it : solo_.Last<ReportReadiness>()) told.push_back(it.readiness);
    return told;
  }
  void Watch() {
    Establish();
    solo_.Step(WatchReadiness{});
  }
  using List = std::vector<Readiness>;
};

TEST_F(ReadinessTest, NobodyIsToldWhoHasNotAsked) {
  Establish();
  solo_.Arrive(wire::Data{}, 10);
  solo_.Arrive(wire::DisConn{});
  EXPECT_TRUE(Solo::Of<ReportReadiness>(solo_.all()).empty());
}

TEST_F(ReadinessTest, WhoAsksIsToldAtOnceAndThenOfChangesAlone) {
  Watch();
  EXPECT_EQ(Told(), List{kWritable});
  solo_.Step(WatchReadiness{});
  EXPECT_EQ(Told(), List{});
  solo_.Step(AskMode{});
  EXPECT_EQ(Told(), List{});
}

TEST_F(ReadinessTest, AConnectionBecomesWritableOnceItIsEstablished) {
  Config config = SmallConfig(true);
  config.watch_readiness = true;
  Solo solo(config);
  solo.Step(AskConnect{});
  EXPECT_EQ(solo.Last<ReportReadiness>().at(0).readiness, Readiness{});
  Established established;
  established.hello_ack = solo.PeerHelloAck({});
  solo.Step(established);
  EXPECT_EQ(solo.Last<ReportReadiness>().at(0).readiness, kWritable);
}

TEST_F(ReadinessTest, BytesThatNoReceiveTakesAreReadableUntilOneDoes) {
  Watch();
  solo_.Arrive(wire::Data{}, 10);
  EXPECT_EQ(Told(), (List{{.readable = true, .writable = true}}));
  solo_.Arrive(wire::Data{}, 10);
  EXPECT_EQ(Told(), (List{{.readable = true, .writable = true}})) << "more of them";
  solo_.Step(AskMode{});
  EXPECT_EQ(Told(), List{});
  solo_.Receive(5);
  EXPECT_EQ(Told(), List{}) << "fifteen are left";
  solo_.Receive(15);
  EXPECT_EQ(Told(), List{kWritable});
}

TEST_F(ReadinessTest, BytesThatAReceiveTakesAreNotReadable) {
  Watch();
  solo_.Receive(10);
  solo_.Arrive(wire::Data{}, 10);
  EXPECT_EQ(Told(), List{});
}

TEST_F(ReadinessTest, AnAdvertThatFindsNoReceiveIsReadable) {
  Watch();
  solo_.Arrive(wire::SrcAvail{kLarge, 7, 0x1000});
  EXPECT_EQ(Told(), (List{{.readable = true, .writable = true}}));
  solo_.Receive(kLarge);
  EXPECT_EQ(Told(), List{kWritable});
}

TEST_F(ReadinessTest, WhatFindsNoSendBufferIsNotWritable) {
  Watch();
  int sends = 0;
  do {
    ASSERT_LT(++sends, 1000);
    solo_.Send(1000);
  } while (Told().empty());
  EXPECT_EQ(Told(), List{Readiness{}});
  solo_.FinishSends();
  EXPECT_EQ(solo_.core().readiness(), kWritable);
}

TEST_F(ReadinessTest, NothingIsWritableBehindALargeSendThatIsAdvertised) {
  Watch();
  const OperationId large = Advertise();
  EXPECT_FALSE(solo_.core().readiness().writable);
  solo_.Arrive(wire::RdmaRdCompl{kLarge - 1});
  for (const Withdraw& it : solo_.Last<Withdraw>()) solo_.Step(esdp::sdp::Withdrawn{it.advert});
  ASSERT_TRUE(solo_.Result(large));
  EXPECT_TRUE(solo_.core().readiness().writable);
}

TEST_F(ReadinessTest, AnUrgentByteIsToldUntilSomebodyHearsOfIt) {
  Watch();
  MessageArrived pending = solo_.Next(wire::Data{}, 1);
  pending.message.base.flags = wire::kFlagOobPending;
  solo_.Step(pending);
  EXPECT_EQ(Told(), (List{{.readable = true, .writable = true, .urgent = true}}));
  solo_.Step(AskUrgent{OperationId{80}});
  EXPECT_EQ(Told(), (List{{.readable = true, .writable = true}}));
}

TEST_F(ReadinessTest, TheEndOfThePeersStreamLeavesWhatIsUnread) {
  Watch();
  solo_.Arrive(wire::Data{}, 10);
  solo_.Arrive(wire::DisConn{});
  EXPECT_EQ(Told(), (List{{.readable = true, .writable = true, .ended = true}}));
  solo_.Receive(10);
  EXPECT_EQ(Told(), (List{{.writable = true, .ended = true}}));
}

TEST_F(ReadinessTest, NothingIsWritableWithoutAQueuePair) {
  Config config = SmallConfig(false);
  config.peer_moves = PeerMoves::kUnguarded;
  config.watch_readiness = true;
  Solo solo(config);
  Solo::Peer peer;
  peer.max_adverts = 16;
  solo.Establish(peer);
  solo.Arrive(wire::SuspComm{5000});
  solo.FinishSends();
  ASSERT_EQ(solo.core().phase(), Phase::kSuspended);
  EXPECT_EQ(solo.core().readiness(), Readiness{});
}

TEST_F(ReadinessTest, NothingIsWritableBehindAShutdown) {
  Watch();
  solo_.Step(AskShutdown{OperationId{90}});
  EXPECT_EQ(Told(), List{Readiness{}});
}

TEST_F(ReadinessTest, AFailedConnectionHasEndedAndIsNothingElse) {
  Watch();
  solo_.Arrive(wire::Data{}, 10);
  solo_.Step(ConnectionLost{});
  EXPECT_EQ(Told(), (List{{.ended = true}}));
}

TEST_F(ReadinessTest, WhoClosesReadsNoMore) {
  Watch();
  solo_.Arrive(wire::Data{}, 10);
  solo_.Step(AskClose{OperationId{91}, false});
  EXPECT_EQ(Told(), List{Readiness{}});
}

}  // namespace
}  // namespace esdp::sdp
