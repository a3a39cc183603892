#include "impl/provider/shard_lock.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/submissions.h"

namespace esdp::provider {
namespace {

TEST(SubmissionsTest, KeepsTheOrderOfOneThread) {
  Submissions<int> submissions;
  for (int i = 0; i < 100; ++i) submissions.Push(i);
  std::vector<int> seen;
  EXPECT_TRUE(submissions.Drain([&](int value) { seen.push_back(value); }));
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_TRUE(submissions.empty());
  EXPECT_FALSE(submissions.Drain([](int) { ADD_FAILURE(); }));
}

TEST(SubmissionsTest, WhatAVisitPushesWaitsForTheNextDrain) {
  Submissions<int> submissions;
  submissions.Push(1);
  int visits = 0;
  submissions.Drain([&](int value) {
    ++visits;
    if (value == 1) submissions.Push(2);
  });
  EXPECT_EQ(visits, 1);
  EXPECT_FALSE(submissions.empty());
  submissions.Drain([&](int value) { EXPECT_EQ(value, 2); });
  EXPECT_TRUE(submissions.empty());
}

// The protocol of ProgressLoop: a request is either executed by its own thread or by the holder
// that made TryTake fail.
TEST(SubmissionsTest, NoRequestIsStrandedBetweenTryTakeAndRelease) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 20'000;
  ShardLock lock;
  Submissions<int> submissions;
  int executed = 0;  // under the shard lock
  const auto leave = [&] {
    do {
      while (submissions.Drain([&](int) { ++executed; })) {
      }
      lock.Release();
    } while (!submissions.empty() && lock.TryTake());
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int request = 0; request < kRequests; ++request) {
        if (lock.TryTake()) {
          ++executed;
          leave();
          continue;
        }
        submissions.Push(request);
        if (lock.TryTake()) leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(submissions.empty());
  EXPECT_EQ(executed, kThreads * kRequests);
}

}  // namespace
}  // namespace esdp::provider
