#include <deque>

#include "gtest/gtest.h"
#include "impl/provider/shard.h"
#include "tests/provider/shard_pair.h"

// A connection that leaves its queue pair for a new one, on real fabrics.

namespace esdp::provider {
namespace {

class SuspensionTest : public testing::TestWithParam<World> {
 protected:
  SuspensionTest() : pair_(GetParam()) {}

  void Suspend(Side& side, ConnectionId connection) {
    Request request;
    request.kind = Request::Kind::kSuspend;
    request.connection = connection;
    request.at = kTimeInfinite;
    side.shard->Submit(request);
  }
  bool Resumed(const Side& side, size_t times) {
    return pair_.RunUntil([&] { return side.recorder.resumed().size() >= times; });
  }
  bool Finish(const Side& side, const Job& job) {
    return pair_.RunUntil([&] { return side.recorder.Find(job.transfer).has_value(); });
  }
  Job& NewJob(Memory& memory, bool is_send, Path path, uint64_t offset, uint64_t length) {
    Job& job = jobs_.emplace_back(memory, is_send, offset, length);
    job.transfer.path = path;
    job.transfer.wait_all = !is_send;
    return job;
  }
  void ExpectWhole(Side& side, const Job& job, uint64_t length) {
    const auto finished = side.recorder.Find(job.transfer);
    ASSERT_TRUE(finished);
    EXPECT_EQ(finished->result.ending, EndReason::kOk) << finished->text;
    EXPECT_EQ(finished->result.bytes, length);
  }

  Side& client() { return pair_.client(); }
  Side& server() { return pair_.server(); }

  // They outlive the shards, which may use them to their last moment.
  std::deque<Memory> memories_;
  std::deque<Job> jobs_;
  ShardPair pair_;
};

constexpr uint64_t kHalf = 200'000;

// R12.1, R12.4: either end may ask, and what was sent before and after arrives as one stream.
TEST_P(SuspensionTest, TheStreamGoesOnOverANewQueuePairWhoeverAsks) {
  ASSERT_TRUE(pair_.Connect({.peer_moves = PeerMoves::kGuarded, .moves_max = 1'000}));
  Memory& from = memories_.emplace_back(client(), 3 * kHalf);
  Memory& to = memories_.emplace_back(server(), 3 * kHalf);
  from.Fill(1);
  for (uint64_t part = 0; part < 3; ++part) {
    const Path path = part == 1 ? Path::kCopy : Path::kZeroCopy;
    Job& send = NewJob(from, true, path, part * kHalf, kHalf);
    Job& receive = NewJob(to, false, path, part * kHalf, kHalf);
    Submit(server(), pair_.server_connection(), receive);
    Submit(client(), pair_.client_connection(), send);
    ASSERT_TRUE(Finish(client(), send) && Finish(server(), receive)) << part;
    ExpectWhole(client(), send, kHalf);
    ExpectWhole(server(), receive, kHalf);
    if (part == 2) break;
    Side& asks = part == 0 ? client() : server();
    Suspend(asks, part == 0 ? pair_.client_connection() : pair_.server_connection());
    ASSERT_TRUE(Resumed(asks, 1)) << part;
    EXPECT_EQ(asks.recorder.resumed()[0].failure.ending, EndReason::kOk)
        << asks.recorder.resumed()[0].failure.text;
  }
  EXPECT_TRUE(from.bytes() == to.bytes());
  EXPECT_TRUE(client().recorder.closed().empty());
  EXPECT_TRUE(server().recorder.closed().empty());
}

// R12.6, R12.7
TEST_P(SuspensionTest, WhatWaitsIsCarriedOverTheNewQueuePair) {
  ASSERT_TRUE(pair_.Connect({.peer_moves = PeerMoves::kGuarded, .moves_max = 1'000}));
  Memory& from = memories_.emplace_back(client(), kHalf);
  Memory& to = memories_.emplace_back(server(), kHalf);
  from.Fill(2);
  Job& send = NewJob(from, true, Path::kZeroCopy, 0, kHalf);
  Submit(client(), pair_.client_connection(), send);
  Suspend(client(), pair_.client_connection());
  ASSERT_TRUE(Resumed(client(), 1));
  EXPECT_EQ(client().recorder.resumed()[0].failure.ending, EndReason::kOk)
      << client().recorder.resumed()[0].failure.text;
  EXPECT_FALSE(client().recorder.Find(send.transfer)) << "nobody has received it";

  Job& receive = NewJob(to, false, Path::kZeroCopy, 0, kHalf);
  Submit(server(), pair_.server_connection(), receive);
  ASSERT_TRUE(Finish(client(), send) && Finish(server(), receive));
  ExpectWhole(client(), send, kHalf);
  ExpectWhole(server(), receive, kHalf);
  EXPECT_TRUE(from.bytes() == to.bytes());
}

INSTANTIATE_TEST_SUITE_P(Worlds, SuspensionTest,
                         testing::Values(World::kSim, World::kQpipManual, World::kQpipThread),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace esdp::provider
