#include <atomic>
#include <chrono>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "tests/provider/shard_pair.h"

// Many threads on one shard: every accepted transfer ends once, whoever turns the loop.

namespace esdp::provider {
namespace {

constexpr int kThreads = 3;
constexpr int kTransfers = 400;  // of each thread
constexpr uint64_t kLength = 512;

class StressTest : public testing::TestWithParam<World> {
 protected:
  StressTest() : pair_(GetParam()) {}

  bool AllFinished(Side& side, size_t count) {
    return pair_.RunUntil([&] { return side.recorder.finished().size() >= count; },
                          std::chrono::seconds(60));
  }

  std::deque<Memory> memories_;
  std::deque<Job> sends_;
  std::deque<Job> receives_;
  ShardPair pair_;
};

TEST_P(StressTest, EveryTransferOfEveryThreadEndsOnce) {
  ASSERT_TRUE(pair_.Connect());
  Memory& from = memories_.emplace_back(pair_.client(), kLength);
  Memory& to = memories_.emplace_back(pair_.server(), kLength);
  for (int i = 0; i < kThreads * kTransfers; ++i) {
    sends_.emplace_back(from, true, 0, kLength);
    receives_.emplace_back(to, false, 0, kLength).transfer.wait_all = true;
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kTransfers; ++i) {
        const size_t index = static_cast<size_t>(t * kTransfers + i);
        Submit(pair_.server(), pair_.server_connection(), receives_[index]);
        Submit(pair_.client(), pair_.client_connection(), sends_[index]);
      }
    });
  }
  ASSERT_TRUE(AllFinished(pair_.server(), receives_.size()));
  ASSERT_TRUE(AllFinished(pair_.client(), sends_.size()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pair_.client().recorder.finished().size(), sends_.size());
  EXPECT_EQ(pair_.server().recorder.finished().size(), receives_.size());
  for (const Recorder::Finished& one : pair_.server().recorder.finished()) {
    EXPECT_EQ(one.result.ending, EndReason::kOk);
  }
  EXPECT_EQ(Shard::Describe(to.region()).operations, 0u);
}

TEST_P(StressTest, CancelsDeadlinesAndAnAbortLeaveNothingUnfinished) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ASSERT_TRUE(pair_.Connect());
  Memory& from = memories_.emplace_back(pair_.client(), kLength);
  Memory& to = memories_.emplace_back(pair_.server(), kLength);
  for (int i = 0; i < kThreads * kTransfers; ++i) {
    sends_.emplace_back(from, true, 0, kLength);
    receives_.emplace_back(to, false, 0, kLength);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, seed] {
      Random random(seed + static_cast<uint64_t>(t));
      for (int i = 0; i < kTransfers; ++i) {
        const size_t index = static_cast<size_t>(t * kTransfers + i);
        Job& receive = receives_[index];
        if (random.Chance(1, 4)) {
          receive.transfer.deadline =
              pair_.server().shard->Now() + std::chrono::microseconds(random.Below(2000));
        }
        Submit(pair_.server(), pair_.server_connection(), receive);
        Submit(pair_.client(), pair_.client_connection(), sends_[index]);
        if (random.Chance(1, 4)) {
          Request cancel;
          cancel.kind = Request::Kind::kCancel;
          cancel.connection = pair_.server_connection();
          cancel.transfer = &receive.transfer;
          pair_.server().shard->Submit(cancel);
        }
        if (t == 0 && i == kTransfers / 2) {
          Submit(pair_.client(), pair_.client_connection(), Request::Kind::kAbort);
        }
      }
    });
  }
  ASSERT_TRUE(AllFinished(pair_.server(), receives_.size()));
  ASSERT_TRUE(AllFinished(pair_.client(), sends_.size()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(pair_.RunUntil([&] { return pair_.server().recorder.closed().size() == 1; }));
  EXPECT_EQ(pair_.client().recorder.finished().size(), sends_.size());
  EXPECT_EQ(pair_.server().recorder.finished().size(), receives_.size());
  EXPECT_EQ(Shard::Describe(to.region()).operations, 0u);
  EXPECT_EQ(Shard::Describe(from.region()).operations, 0u);
}

INSTANTIATE_TEST_SUITE_P(Worlds, StressTest,
                         testing::Values(World::kQpipManual, World::kQpipThread),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace esdp::provider
