#include "impl/sdp/connection.h"

#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::Pair;
using testing::PairOptions;
using testing::SmallConfig;
using testing::Solo;

PairOptions SmallPair() {
  PairOptions options;
  options.a = SmallConfig(true);
  options.b = SmallConfig(false);
  return options;
}

// R2.7.2
TEST(ConnectionTest, BothSidesReportConnectedOnce) {
  Pair pair(SmallPair(), 1);

  pair.Connect();

  EXPECT_EQ(pair.a.CountOf<ReportConnected>(), 1u);
  EXPECT_EQ(pair.b.CountOf<ReportConnected>(), 1u);
  EXPECT_EQ(pair.a.core().phase(), Phase::kEstablished);
}

TEST(ConnectionTest, ASmallSendIsCopiedOncePerSide) {
  Pair pair(SmallPair(), 1);
  pair.Connect();

  const OperationId receive = pair.b.AskToReceive({.pieces = {100}});
  const OperationId send = pair.a.AskToSend({.pieces = {40}});
  pair.Settle();

  EXPECT_TRUE(pair.a.finished(send));
  EXPECT_EQ(pair.b.operation(receive).result->bytes, 40u);
  EXPECT_EQ(pair.b.received_stream(), pair.a.SentStream());
  EXPECT_EQ(pair.a.core().counters().payload_copies, 1u);
  EXPECT_EQ(pair.b.core().counters().payload_copies, 1u);
}

TEST(ConnectionTest, ALargeSendIsReadByThePeerWithoutACopy) {
  Pair pair(SmallPair(), 1);
  pair.Connect();

  const OperationId receive = pair.b.AskToReceive({.pieces = {100000}, .wait_all = true});
  const OperationId send = pair.a.AskToSend({.pieces = {100000}});
  pair.Settle();

  EXPECT_EQ(pair.b.operation(receive).result->bytes_zero_copy, 100000u);
  EXPECT_EQ(pair.a.operation(send).result->bytes_zero_copy, 100000u);
  EXPECT_EQ(pair.b.received_stream(), pair.a.SentStream());
  EXPECT_EQ(pair.a.core().counters().payload_copies, 0u);
  EXPECT_EQ(pair.b.core().counters().payload_copies, 0u);
}

// R19.1, R19.2
TEST(ConnectionTest, AnEndThatDeclaresOneAdvertLeavesTheModesAloneThoughThePeerDeclaresMany) {
  PairOptions options = SmallPair();
  options.a.max_adverts = 1;
  Pair pair(options, 1);
  pair.Connect();

  for (int i = 0; i < 4; ++i) pair.a.AskToSend({.pieces = {8192}, .zcopy_min = 4096});
  for (int i = 0; i < 4; ++i) pair.b.AskToReceive({.pieces = {8192}, .zcopy_min = 4096});
  pair.Settle();

  EXPECT_TRUE(pair.a.Posted<wire::ModeChange>().empty());
  EXPECT_TRUE(pair.b.Posted<wire::ModeChange>().empty());
  EXPECT_FALSE(pair.a.Posted<wire::SrcAvail>().empty());
}

TEST(ConnectionTest, AGracefulCloseEndsBothSidesWithoutACause) {
  Pair pair(SmallPair(), 1);
  pair.Connect();

  const OperationId close_a = pair.a.AskToClose(false);
  const OperationId close_b = pair.b.AskToClose(false);
  pair.Settle();

  EXPECT_EQ(pair.a.operation(close_a).result->outcome, Outcome::kDone);
  EXPECT_EQ(pair.b.operation(close_b).result->outcome, Outcome::kDone);
  EXPECT_TRUE(pair.a.core().closed());
  EXPECT_TRUE(pair.b.core().closed());
}

TEST(ConnectionTest, FreeReceiveBuffersArePostedInGroups) {
  Config config = SmallConfig(true);
  config.receive_buffers = 8;
  config.receives_at_once = 3;
  Solo solo(config);
  solo.Establish();
  EXPECT_EQ(Solo::Of<PostReceive>(solo.all()).size(), 8u);  // the first ones all at once
  AskReceive whole;
  whole.wait_all = true;
  (void)solo.Receive(1000, whole);
  for (const size_t posted : {0u, 0u, 3u, 0u, 0u, 3u}) {
    solo.Arrive(wire::Data{}, 10);
    EXPECT_EQ(solo.Last<PostReceive>().size(), posted);
  }
}

TEST(ConnectionTest, NoReceiveBufferWaitsForOthersOnceThePeerLacksAGroup) {
  Config config = SmallConfig(true);
  config.receive_buffers = 8;
  config.receives_at_once = 3;
  Solo solo(config);
  solo.Establish();
  (void)solo.Receive(10);
  solo.Arrive(wire::Data{}, 10);  // taken: its buffer is free, and waits
  EXPECT_TRUE(solo.Last<PostReceive>().empty());
  for (int i = 0; i < 2; ++i) {  // not taken, as all that follow
    solo.Arrive(wire::Data{}, 10);
    EXPECT_TRUE(solo.Last<PostReceive>().empty());
  }
  solo.Arrive(wire::Data{}, 10);
  EXPECT_EQ(solo.Last<PostReceive>().size(), 1u);
  (void)solo.Receive(10);  // takes one of them, which is posted by itself
  EXPECT_EQ(solo.Last<PostReceive>().size(), 1u);
}

}  // namespace
}  // namespace esdp::sdp
