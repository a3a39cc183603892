#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/regions.h"
#include "impl/provider/shard.h"
#include "tests/provider/shard_pair.h"

// Sends that are over within the call that asks for them.

namespace esdp::provider {
namespace {

class ImmediateSendTest : public testing::TestWithParam<World> {
 protected:
  ImmediateSendTest() : pair_(GetParam()) {}

  void Connect() {
    ASSERT_TRUE(pair_.Connect());
    from_ = &memories_.emplace_back(client(), 400'000);
    to_ = &memories_.emplace_back(server(), 400'000);
    from_->Fill(1);
  }
  bool TrySendImmediate(uint64_t offset, uint64_t length) {
    ImmediateSend send = SendOf(offset, length);
    return client().shard->TrySendImmediate(pair_.client_connection(), send);
  }
  // A thread of the shard may be at work, and what was sent before may be in flight.
  bool SendInTime(uint64_t offset, uint64_t length) {
    return pair_.RunUntil([&] { return TrySendImmediate(offset, length); });
  }
  ImmediateSend SendOf(uint64_t offset, uint64_t length) {
    const ConstBytes& part =
        parts_.emplace_back(ConstBytes(from_->bytes()).subspan(offset, length));
    return {.parts = {&part, 1}, .length = length};
  }
  Job& SubmitReceive(uint64_t offset, uint64_t length) {
    Job& receive = jobs_.emplace_back(*to_, false, offset, length);
    receive.transfer.wait_all = true;
    Submit(server(), pair_.server_connection(), receive);
    return receive;
  }
  Job& SubmitSend(uint64_t offset, uint64_t length) {
    Job& send = jobs_.emplace_back(*from_, true, offset, length);
    Submit(client(), pair_.client_connection(), send);
    return send;
  }
  bool Finish(Side& side, const Job& job) {
    return pair_.RunUntil([&] { return side.recorder.Find(job.transfer).has_value(); });
  }
  bool SameUpTo(size_t length) {
    return std::equal(from_->bytes().begin(),
                      from_->bytes().begin() + static_cast<ptrdiff_t>(length),
                      to_->bytes().begin());
  }
  uint64_t BytesSent() {
    return client().shard->Counters(pair_.client_connection())->bytes_sent_copied;
  }
  void ExpectNothingHappened() {
    EXPECT_TRUE(client().recorder.sent().empty());
    EXPECT_TRUE(client().recorder.finished().empty());
    EXPECT_EQ(BytesSent(), 0u);
  }

  Side& client() { return pair_.client(); }
  Side& server() { return pair_.server(); }

  // They outlive the shards, which may use them to their last moment.
  std::deque<Memory> memories_;
  std::deque<Job> jobs_;
  std::deque<ConstBytes> parts_;
  ShardPair pair_;
  Memory* from_ = nullptr;
  Memory* to_ = nullptr;
};

// Where nothing moves but by the test.
class ImmediateSendByHandTest : public ImmediateSendTest {};

TEST_P(ImmediateSendTest, ItsBytesArriveAndItIsToldWithItsPlaceInTheStream) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Job& receive = SubmitReceive(0, 180);
  ASSERT_TRUE(SendInTime(0, 100));
  ASSERT_TRUE(SendInTime(100, 80));
  ASSERT_TRUE(Finish(server(), receive));
  EXPECT_EQ(server().recorder.Find(receive.transfer)->result.bytes, 180u);
  EXPECT_TRUE(SameUpTo(180));
  const std::vector<ImmediateSend> sent = client().recorder.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].stream_offset, 0u);
  EXPECT_EQ(sent[0].length, 100u);
  EXPECT_EQ(sent[1].stream_offset, 100u);
  EXPECT_EQ(sent[1].length, 80u);
  EXPECT_TRUE(client().recorder.finished().empty()) << "told twice";
  EXPECT_EQ(from_->region().operations(), 0u);
}

TEST_P(ImmediateSendTest, ItsMemoryMayBeWrittenToAsSoonAsTheCallReturns) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const std::vector<std::byte> before(from_->bytes().begin(), from_->bytes().begin() + 100);
  ASSERT_TRUE(SendInTime(0, 100));
  std::fill_n(from_->bytes().begin(), 100, std::byte{0});
  const Job& receive = SubmitReceive(0, 100);
  ASSERT_TRUE(Finish(server(), receive));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), to_->bytes().begin()));
}

TEST_P(ImmediateSendTest, OnAnUnknownConnectionNothingIsSent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  ImmediateSend send = SendOf(0, 100);
  EXPECT_FALSE(client().shard->TrySendImmediate(ConnectionId{0xdeadbeef}, send));
  ExpectNothingHappened();
}

TEST_P(ImmediateSendTest, OnAConnectionThatHasEndedNothingIsSent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Submit(client(), pair_.client_connection(), Request::Kind::kAbort);
  ASSERT_TRUE(pair_.RunUntil([&] { return !client().recorder.closed().empty(); }));
  EXPECT_FALSE(TrySendImmediate(0, 100));
  EXPECT_TRUE(client().recorder.sent().empty());
}

TEST_P(ImmediateSendTest, WhatIsNotSmallIsLeftToSubmit) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const uint64_t length : {0u, 3'000u, 100'000u})
    EXPECT_FALSE(TrySendImmediate(0, length)) << length;
  ExpectNothingHappened();
}

TEST_P(ImmediateSendTest, ASubmittedSendComesBehindIt) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Job& receive = SubmitReceive(0, 100'300);
  uint64_t at = 0;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(SendInTime(at, 50));
    SubmitSend(at + 50, 100);
    SubmitSend(at + 150, 50'000);
    at += 50'150;
  }
  ASSERT_TRUE(Finish(client(), jobs_.back()));
  ASSERT_TRUE(Finish(server(), receive));
  EXPECT_EQ(server().recorder.Find(receive.transfer)->result.bytes, 100'300u);
  EXPECT_TRUE(SameUpTo(100'300));
  const std::vector<ImmediateSend> sent = client().recorder.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].stream_offset, 0u);
  EXPECT_EQ(sent[1].stream_offset, 50'150u);
}

TEST_P(ImmediateSendTest, ItDoesNotOvertakeASubmittedSendThatWaitsForThePeer) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Job& large = jobs_.emplace_back(*from_, true, 0, 390'000);
  large.transfer.path = Path::kCopy;
  Submit(client(), pair_.client_connection(), large);
  ASSERT_TRUE(pair_.RunUntil([&] {
    return client().shard->Counters(pair_.client_connection())->credit_stalls > 0;
  })) << "nothing holds the sender back";
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(TrySendImmediate(390'000, 100));
  EXPECT_TRUE(client().recorder.sent().empty());
  SubmitSend(390'000, 100);
  const Job& receive = SubmitReceive(0, 390'100);
  ASSERT_TRUE(Finish(server(), receive));
  EXPECT_TRUE(SameUpTo(390'100));
}

TEST_P(ImmediateSendByHandTest, WhileAnotherIsInFlightNothingIsSent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  pair_.RunFor(std::chrono::milliseconds(20));
  ASSERT_TRUE(TrySendImmediate(0, 100));
  EXPECT_FALSE(TrySendImmediate(100, 100));
  EXPECT_FALSE(TrySendImmediate(100, 100));
  EXPECT_EQ(client().recorder.sent().size(), 1u);
  EXPECT_EQ(BytesSent(), 100u);
  const Job& receive = SubmitReceive(0, 200);
  ASSERT_TRUE(SendInTime(100, 100)) << "it has left by now";
  ASSERT_TRUE(Finish(server(), receive));
  EXPECT_TRUE(SameUpTo(200));
}

TEST_P(ImmediateSendByHandTest, SeveralLeaveInOneMessageAlsoWhileAnotherIsInFlight) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  pair_.RunFor(std::chrono::milliseconds(20));
  const uint64_t before = client().shard->Counters(pair_.client_connection())->messages_sent;
  ASSERT_TRUE(TrySendImmediate(0, 100));
  const ConstBytes bytes(from_->bytes());
  const std::vector<ConstBytes> parts = {bytes.subspan(100, 7), bytes.subspan(107, 1),
                                         bytes.subspan(108, 500)};
  ImmediateSend several = {.parts = parts, .length = 508};
  ASSERT_TRUE(client().shard->TrySendImmediate(pair_.client_connection(), several));
  EXPECT_EQ(several.stream_offset, 100u);
  const auto counters = client().shard->Counters(pair_.client_connection());
  EXPECT_EQ(counters->messages_sent - before, 2u);
  EXPECT_EQ(counters->sends_copied, 4u);
  EXPECT_EQ(counters->payload_copies, 4u);
  const Job& receive = SubmitReceive(0, 608);
  ASSERT_TRUE(Finish(server(), receive));
  EXPECT_TRUE(SameUpTo(608));
}

TEST_P(ImmediateSendByHandTest, ThePeerHasItWithoutAnyFurtherCallOfTheSender) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  pair_.RunFor(std::chrono::milliseconds(20));
  const Job& receive = SubmitReceive(0, 100);
  ASSERT_TRUE(TrySendImmediate(0, 100));
  for (int i = 0; i < 1000 && !server().recorder.Find(receive.transfer); ++i) {
    if (!server().shard->Poll() && GetParam() == World::kSim) {
      server().shard->Advance(server().shard->Now() + std::chrono::milliseconds(1));
    }
  }
  ASSERT_TRUE(server().recorder.Find(receive.transfer));
  EXPECT_TRUE(SameUpTo(100));
}

std::string ParamName(const testing::TestParamInfo<World>& info) { return NameOf(info.param); }

INSTANTIATE_TEST_SUITE_P(On, ImmediateSendTest,
                         testing::Values(World::kSim, World::kQpipManual, World::kQpipThread),
                         ParamName);
INSTANTIATE_TEST_SUITE_P(On, ImmediateSendByHandTest,
                         testing::Values(World::kSim, World::kQpipManual), ParamName);

}  // namespace
}  // namespace esdp::provider
