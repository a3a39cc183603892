#include "impl/sdp/flow/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "impl/sdp/common/limits.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::Pair;
using testing::PairOptions;
using testing::ReceiveOptions;
using testing::SendOptions;
using testing::Side;
using testing::SmallConfig;
using testing::Solo;

wire::BaseHeader Header(uint32_t acknowledged, uint16_t buffers) {
  wire::BaseHeader header;
  header.acknowledged = acknowledged;
  header.buffers = buffers;
  return header;
}

// --- the parts ---

TEST(ResizeRequestTest, IsMadeOnceWhenEnoughHasBeenSentInMessages) {
  ResizeRequest request;
  request.Start(1000, 4000);
  request.OnPayloadPosted(kResizeAfterBuffers * 1000 - 1);
  EXPECT_FALSE(request.Due());
  request.OnPayloadPosted(1);
  EXPECT_TRUE(request.Due());
  EXPECT_EQ(request.Take(9).desired_size, 4000u);
  EXPECT_FALSE(request.Due());

  ResizeRequest content;
  content.Start(1000, 1000);
  content.OnPayloadPosted(1u << 30);
  EXPECT_FALSE(content.Due());
}

TEST(ResizeRequestTest, ByNeedItIsMadeOnlyWhereMuchIsSentThatDoesNotFit) {
  ResizeRequest request;
  request.Start(1000, 4000, /*by_need=*/true);
  EXPECT_FALSE(request.Counts(/*cut=*/false));
  ASSERT_TRUE(request.Counts(/*cut=*/true));
  request.OnPayloadPosted(kResizeByNeedAfterBuffers * 1000 - 1);
  EXPECT_FALSE(request.Due());
  EXPECT_TRUE(request.settled());
  request.OnPayloadPosted(1);
  EXPECT_TRUE(request.Due());
  EXPECT_FALSE(request.settled());
}

TEST(ResizeRequestTest, ByNeedNoBufferShrinks) {
  ResizeRequest request;
  request.Start(4000, 1000, /*by_need=*/true);
  EXPECT_FALSE(request.Counts(/*cut=*/true));
  EXPECT_FALSE(request.Due());
  EXPECT_EQ(request.size(), 4000u);
}

// R11.4, R11.5
TEST(ResizeRequestTest, AnIncreaseCountsOnlyBehindTheMessagesThatMayMeetOldBuffers) {
  ResizeRequest request;
  request.Start(1000, 4000);
  (void)request.Take(9);
  EXPECT_EQ(request.size(), 1000u);
  EXPECT_EQ(request.OnAck(4000, Header(10, 8)), nullptr);

  EXPECT_FALSE(request.Rises(17));
  EXPECT_EQ(request.size(), 1000u);
  EXPECT_TRUE(request.Rises(18));
  EXPECT_EQ(request.size(), 4000u);
  EXPECT_FALSE(request.Rises(19));
}

// R11.2
TEST(ResizeRequestTest, ADecreaseIsObeyedAtOnceAndTheAnswerMayGiveSomeBack) {
  ResizeRequest request;
  request.Start(4000, 1000);
  (void)request.Take(9);
  EXPECT_EQ(request.size(), 1000u);
  EXPECT_EQ(request.OnAck(2000, Header(10, 8)), nullptr);
  EXPECT_EQ(request.size(), 2000u);
}

// R11.7
TEST(ResizeRequestTest, ARefusalIsFinalAlsoOneThatLeavesTheHeaderOut) {
  for (const uint32_t answer : {1000u, 984u, 1016u}) {
    ResizeRequest request;
    request.Start(1000, 4000);
    (void)request.Take(9);
    EXPECT_EQ(request.OnAck(answer, Header(10, 8)), nullptr);
    EXPECT_FALSE(request.Rises(1000));
    EXPECT_EQ(request.size(), 1000u);
    request.OnPayloadPosted(1u << 30);
    EXPECT_FALSE(request.Due());
  }
}

TEST(ResizeRequestTest, MoreThanWasAskedForIsNotUsed) {
  ResizeRequest request;
  request.Start(1000, 4000);
  (void)request.Take(9);
  EXPECT_EQ(request.OnAck(1u << 31, Header(0, 0)), nullptr);
  EXPECT_TRUE(request.Rises(0));
  EXPECT_EQ(request.size(), 4000u);
}

TEST(ResizeRequestTest, AnswersThatCannotBeAreBreaches) {
  ResizeRequest raising;
  raising.Start(1000, 4000);
  (void)raising.Take(9);
  EXPECT_NE(raising.OnAck(983, Header(10, 8)), nullptr);
  ResizeRequest lowering;
  lowering.Start(4000, 1000);
  (void)lowering.Take(9);
  EXPECT_NE(lowering.OnAck(4001, Header(10, 8)), nullptr);
}

// R12.6
TEST(ResizeRequestTest, OfARequestOnAnotherQueuePairNothingIsLeft) {
  ResizeRequest request;
  request.Start(4112, 2016);
  static_cast<void>(request.Take(5));
  ASSERT_TRUE(request.outstanding());
  request.Start(2016, 2016);
  EXPECT_FALSE(request.outstanding());
  EXPECT_TRUE(request.settled());
  EXPECT_EQ(request.size(), 2016u);
}

// R11.6
TEST(ResizeAnswerTest, AnIncreaseIsAnsweredWhenEveryOldBufferIsUsedUp) {
  ResizeAnswer answer;
  answer.Start(1000, 3000);
  EXPECT_EQ(answer.OnChRcvBuf(1u << 31), ResizeAnswer::Next::kPrepare);
  EXPECT_EQ(answer.wanted(), 3000u);
  EXPECT_EQ(answer.size(), 1000u);
  answer.OnPrepared(true, 2);
  EXPECT_EQ(answer.size(), 3000u);
  answer.OnReceiveTaken();
  EXPECT_FALSE(answer.due());
  EXPECT_EQ(answer.told(), 1000u);
  answer.OnReceiveTaken();
  EXPECT_TRUE(answer.due());
  EXPECT_EQ(answer.Take().actual_size, 3000u);
  EXPECT_EQ(answer.told(), 3000u);
}

TEST(ResizeAnswerTest, WithoutMemoryTheSizeStays) {
  ResizeAnswer answer;
  answer.Start(1000, 3000);
  EXPECT_EQ(answer.OnChRcvBuf(2000), ResizeAnswer::Next::kPrepare);
  answer.OnPrepared(false, 8);
  EXPECT_TRUE(answer.due());
  EXPECT_EQ(answer.Take().actual_size, 1000u);
}

// R11.3
TEST(ResizeAnswerTest, ADecreaseGoesToTheSizeAskedForAndIsAnsweredAtOnce) {
  ResizeAnswer answer;
  answer.Start(1000, 3000);
  EXPECT_EQ(answer.OnChRcvBuf(37), ResizeAnswer::Next::kAnswer);
  EXPECT_EQ(answer.Take().actual_size, 37u);
}

// --- a connection ---

class ResizeTest : public ::testing::Test {
 protected:
  static Config Willing(bool connecting) {
    Config config = SmallConfig(connecting);
    config.receive_buffer_bytes_max = 8 * 1024;
    config.peer_receive_buffer_bytes = 4096;
    config.max_adverts = 16;
    return config;
  }
  static void Establish(Solo& solo, uint8_t max_adverts = 16) {
    Solo::Peer peer;
    peer.max_adverts = max_adverts;
    solo.Establish(peer);
  }
  // Enough Data that a request leaves.
  static std::vector<Send> Stream(Solo& solo) {
    AskSend plain;
    plain.path = Path::kCopy;
    solo.Send(5 * 1024, plain);
    return OfKind<wire::ChRcvBuf>(solo);
  }
  // The peer's half is Pipelined; then a receive that is shown to it.
  static void Piped(Solo& solo) { solo.Arrive(wire::ModeChange{false, wire::Mode::kPipelined}); }
  static void Show(Solo& solo, uint32_t bytes) {
    AskReceive traits;
    traits.placeable = true;
    traits.zcopy_min = 0;
    solo.Receive(bytes, traits);
  }
  static void UseUpOldBuffers(Solo& solo) {
    for (int i = 0; i < 8; ++i) solo.Arrive(wire::Data{});
  }
  template <typename T>
  static std::vector<Send> OfKind(Solo& solo) {
    std::vector<Send> found;
    for (const Send& send : Solo::Of<Send>(solo.all())) {
      if (std::holds_alternative<T>(send.message.body)) found.push_back(send);
    }
    return found;
  }
};

TEST_F(ResizeTest, AskedOfAPeerThatCanAndNotOfADeployedOne) {
  for (const uint8_t max_adverts : {uint8_t{1}, uint8_t{2}}) {
    Solo solo(Willing(true));
    Establish(solo, max_adverts);
    Stream(solo);
    solo.FinishSends();
    solo.Arrive(wire::Data{});
    EXPECT_EQ(OfKind<wire::ChRcvBuf>(solo).size(), max_adverts == 1 ? 0u : 1u);
  }
}

// R11.8
TEST_F(ResizeTest, WhenBothAskTheConnectingSideAnswersAndTheAcceptingSideDisregards) {
  for (const bool connecting : {true, false}) {
    Solo solo(Willing(connecting));
    Establish(solo);
    Stream(solo);
    solo.FinishSends();
    solo.Arrive(wire::Data{});
    ASSERT_EQ(OfKind<wire::ChRcvBuf>(solo).size(), 1u);
    solo.Arrive(wire::ChRcvBuf{500});
    EXPECT_EQ(OfKind<wire::ChRcvBufAck>(solo).size(), connecting ? 1u : 0u);
    EXPECT_TRUE(Solo::Of<Disconnect>(solo.all()).empty());
  }
}

// R11.1
TEST_F(ResizeTest, ASecondRequestBeforeTheAnswerEndsTheConnection) {
  Solo solo(Willing(true));
  Establish(solo);
  solo.Arrive(wire::ChRcvBuf{4096});
  EXPECT_TRUE(OfKind<wire::ChRcvBufAck>(solo).empty()) << "old buffers are posted";
  solo.Arrive(wire::ChRcvBuf{4096});
  ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
  EXPECT_STREQ(solo.Last<Disconnect>()[0].reason, "ChRcvBuf: one is unacknowledged");
}

// R11.6
TEST_F(ResizeTest, BuffersOfTheNewSizeArePostedAtOnceAndTheAnswerFollowsTheLastOldOne) {
  Solo solo(Willing(true));
  Establish(solo);
  solo.Arrive(wire::ChRcvBuf{4096});
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(OfKind<wire::ChRcvBufAck>(solo).empty()) << i;
    solo.Arrive(wire::Data{});
    EXPECT_EQ(solo.Last<PostReceive>().at(0).bytes, 4096u);
  }
  ASSERT_EQ(OfKind<wire::ChRcvBufAck>(solo).size(), 1u);
  EXPECT_EQ(solo.core().counters().receive_resizes, 1u);
}

TEST_F(ResizeTest, TheAnswerWaitsForTheSinkAvailThatALargerMessageWouldNotFitInto) {
  Solo solo(Willing(true));
  Establish(solo);
  Piped(solo);
  Show(solo, 2000);
  Show(solo, 6000);
  ASSERT_EQ(OfKind<wire::SinkAvail>(solo).size(), 2u);
  solo.Arrive(wire::ChRcvBuf{4096});
  UseUpOldBuffers(solo);
  EXPECT_TRUE(OfKind<wire::ChRcvBufAck>(solo).empty());
  solo.Arrive(wire::RdmaWrCompl{100});

  EXPECT_EQ(OfKind<wire::ChRcvBufAck>(solo).size(), 1u) << "the other one is large enough";
}

TEST_F(ResizeTest, WhatIsShownWhileTheAnswerIsOwedFitsTheNewSize) {
  Solo solo(Willing(true));
  Establish(solo);
  Piped(solo);
  solo.Arrive(wire::ChRcvBuf{4096});
  Show(solo, 4096);
  EXPECT_TRUE(OfKind<wire::SinkAvail>(solo).empty());
  solo.Step(AskCancel{OperationId{1}, CancelMode::kIfNotStarted, Outcome::kCancelled});
  Show(solo, 4097);

  EXPECT_EQ(OfKind<wire::SinkAvail>(solo).size(), 1u);
}

TEST_F(ResizeTest, MessagesDoNotGrowWhileASinkAvailOfTheOldSizeIsInTheirWay) {
  Solo solo(Willing(true));
  Establish(solo);
  solo.Step(AskMode{ModeWish::kPipelined, ModeWish::kAutomatic});
  Stream(solo);
  solo.FinishSends();
  solo.Arrive(wire::Data{});
  ASSERT_EQ(OfKind<wire::ChRcvBuf>(solo).size(), 1u);
  const auto messages = static_cast<uint32_t>(OfKind<wire::Data>(solo).size());
  solo.Arrive(wire::SinkAvail{1500, 7, 0x1000, messages});
  solo.TellBuffers(0);
  solo.Arrive(wire::ChRcvBufAck{4096});
  EXPECT_EQ(solo.core().counters().peer_resizes, 0u);
  solo.TellBuffers(8);
  solo.Arrive(wire::Data{});
  AskSend plain;
  plain.path = Path::kCopy;
  solo.Send(6000, plain);

  const auto sent = solo.Sent<wire::Data>();
  ASSERT_GE(sent.size(), 2u);
  EXPECT_EQ(sent[0].gather[0].length, 1024u);
  EXPECT_EQ(sent[1].gather[0].length, 1024u) << "cut before the advert was gone";
  solo.FinishSends();
  solo.Arrive(wire::Data{});
  EXPECT_EQ(solo.core().counters().peer_resizes, 1u);
}

// R11.11
TEST_F(ResizeTest, AnAnswerThatNothingAskedForIsIgnored) {
  Solo solo(Willing(true));
  Establish(solo);
  solo.Arrive(wire::ChRcvBufAck{1u << 31});
  EXPECT_TRUE(Solo::Of<Disconnect>(solo.all()).empty());
  AskSend plain;
  plain.path = Path::kCopy;
  solo.Send(3000, plain);
  for (const Send& send : solo.Sent<wire::Data>()) EXPECT_LE(send.gather[0].length, 1024u);
}

// R11.10
TEST(ResizePairTest, MessagesGrowOnceThePeersBuffersHaveAndNoByteIsLost) {
  PairOptions options;
  options.a = SmallConfig(true);
  options.b = SmallConfig(false);
  options.a.max_adverts = options.b.max_adverts = 16;
  options.a.peer_receive_buffer_bytes = 4096 + 16;
  options.b.receive_buffer_bytes_max = 4096 + 16;
  Pair pair(options, 7);
  pair.Connect();
  SendOptions send;
  send.pieces = {100'000};
  send.path = Path::kCopy;
  pair.a.AskToSend(send);
  ReceiveOptions receive;
  receive.pieces = {100'000};
  receive.wait_all = true;
  receive.path = Path::kCopy;
  const OperationId all = pair.b.AskToReceive(receive);
  pair.Settle();

  EXPECT_EQ(pair.b.operation(all).result->bytes, 100'000u);
  EXPECT_EQ(pair.b.received_stream(), pair.a.SentStream());
  EXPECT_EQ(pair.a.core().counters().peer_resizes, 1u);
  uint32_t longest = 0;
  for (const Action& action : pair.a.history()) {
    const auto* data = std::get_if<Send>(&action);
    if (data != nullptr && data->gather_count > 0) {
      longest = std::max(longest, data->gather[0].length);
    }
  }
  EXPECT_EQ(longest, 4096u);
}

// What a campaign of two cores has met.
struct Grown {
  uint64_t resizes = 0, adverts = 0, stale = 0;
};

OperationId Receive(Side& side, Random& random) {
  ReceiveOptions receive;
  receive.pieces = {static_cast<uint32_t>(random.Between(1, 6000))};
  receive.zcopy_min = 0;
  return side.AskToReceive(receive);
}

uint64_t SendSome(Side& side, Random& random) {
  SendOptions send;
  send.pieces = {static_cast<uint32_t>(random.Between(1, 8000))};
  send.path = random.Chance(1, 2) ? Path::kCopy : Path::kZeroCopy;
  side.AskToSend(send);
  return send.pieces[0];
}

// Messages of a's that grow, receives of b's of all sizes that are shown, and bytes the other way,
// whose acknowledgements move a's MSeq on while an advert stays.
void StreamIntoShownReceives(uint64_t seed, Grown& grown) {
  Random random(seed);
  PairOptions options;
  options.a = SmallConfig(true);
  options.b = SmallConfig(false);
  options.a.mode_send = ModeWish::kPipelined;
  options.a.peer_receive_buffer_bytes = 4096 + 16;
  options.b.receive_buffer_bytes_max = 4096 + 16;
  Pair pair(options, seed);
  pair.Connect();
  uint64_t sent = 0, sent_back = 0;
  while (sent < 60'000) {
    const uint64_t what = random.Below(8);
    if (what < 3) Receive(pair.b, random);
    if (what == 3) sent += SendSome(pair.a, random);
    if (what == 4) sent_back += SendSome(pair.b, random);
    if (what == 5) Receive(pair.a, random);
    if (what == 6) pair.Settle(std::chrono::seconds(1));
    for (uint64_t i = random.Below(40); i > 0; --i) pair.Happen();
  }
  for (int i = 0; i < 1000; ++i) {  // receives end short: as many more as it takes
    if (pair.b.received_stream().size() < sent) Receive(pair.b, random);
    if (pair.a.received_stream().size() < sent_back) Receive(pair.a, random);
    pair.Settle();
  }
  EXPECT_TRUE(pair.b.received_stream() == pair.a.SentStream());
  EXPECT_TRUE(pair.a.received_stream() == pair.b.SentStream());
  EXPECT_EQ(pair.a.CountOf<Disconnect>() + pair.b.CountOf<Disconnect>(), 0u);
  grown.resizes += pair.a.core().counters().peer_resizes;
  grown.adverts += pair.b.core().counters().sink_adverts_sent;
  grown.stale += pair.a.core().counters().stale_adverts;
}

TEST(ResizePairTest, NoMessageIsEverLargerThanTheReceiveThatIsShownInItsWay) {
  Grown grown;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StreamIntoShownReceives(seed, grown);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(grown.resizes, 50u);
  EXPECT_GT(grown.adverts, 200u);
  EXPECT_GT(grown.stale, 40u);
}

}  // namespace
}  // namespace esdp::sdp
