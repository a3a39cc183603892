#include "impl/sdp/outbound/adaptive_threshold.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <utility>

namespace esdp::sdp {
namespace {

constexpr uint64_t kInitial = 64 * 1024;

class AdaptiveThresholdTest : public ::testing::Test {
 protected:
  AdaptiveThresholdTest() { threshold_.Start(kInitial, {}); }
  // Operations of that size, one after the other, each by the way that the threshold says.
  void Run(uint64_t bytes, int64_t copied_ns, int64_t zero_copy_ns, uint32_t operations = 200) {
    for (uint32_t i = 0; i < operations; ++i) {
      const OperationId id{i};
      const bool zero_copy = bytes >= threshold_.Begin(id, bytes, now_);
      now_ += std::chrono::nanoseconds(zero_copy ? zero_copy_ns : copied_ns);
      threshold_.End(id, bytes, zero_copy ? bytes : 0, true, now_);
      EXPECT_GE(threshold_.in_force(), AdaptiveThreshold::kMin);
      EXPECT_LE(threshold_.in_force(), AdaptiveThreshold::kMax);
      zero_copies_ += zero_copy ? 1 : 0;
    }
  }

  AdaptiveThreshold threshold_;
  Time now_{};
  uint32_t zero_copies_ = 0;
};

TEST_F(AdaptiveThresholdTest, ACheapZeroCopyMakesItFallToThatSize) {
  Run(20'000, 9'000, 3'000);
  EXPECT_EQ(threshold_.in_force(), 16u * 1024);
  EXPECT_GT(zero_copies_, 100u);
}

TEST_F(AdaptiveThresholdTest, AnExpensiveZeroCopyMakesItRiseAboveThatSize) {
  Run(300'000, 20'000, 90'000);
  EXPECT_EQ(threshold_.in_force(), 512u * 1024);
  EXPECT_LT(zero_copies_, 100u);
}

TEST_F(AdaptiveThresholdTest, EqualCostsLeaveItWhereItIs) {
  Run(20'000, 5'060, 5'000);
  Run(100'000, 5'000, 5'060);
  EXPECT_EQ(threshold_.in_force(), kInitial);
}

TEST_F(AdaptiveThresholdTest, NeverLeavesItsBounds) {
  for (uint64_t bytes = 1; bytes < 64'000'000; bytes *= 2) Run(bytes, 1'000'000, 1);
  EXPECT_EQ(threshold_.in_force(), AdaptiveThreshold::kMin);
  for (uint64_t bytes = 1; bytes < 64'000'000; bytes *= 2) Run(bytes, 1, 1'000'000, 1000);
  EXPECT_EQ(threshold_.in_force(), AdaptiveThreshold::kMax);
  threshold_.Start(1, {});
  EXPECT_EQ(threshold_.in_force(), AdaptiveThreshold::kMin);
}

TEST_F(AdaptiveThresholdTest, FollowsCostsThatChange) {
  Run(100'000, 10'000, 50'000);
  EXPECT_EQ(threshold_.in_force(), 128u * 1024);
  Run(100'000, 50'000, 10'000, 2000);
  EXPECT_EQ(threshold_.in_force(), 64u * 1024);
}

TEST_F(AdaptiveThresholdTest, TheWaitBehindAnEarlierOperationIsNotItsCost) {
  // Queued together: the zero-copy ones end last and would seem dear.
  for (uint32_t round = 0; round < 10; ++round) {
    for (uint32_t i = 0; i < 3; ++i) (void)threshold_.Begin(OperationId{i}, 70'000, now_);
    for (uint32_t i = 0; i < 3; ++i) {
      now_ += std::chrono::microseconds(10);
      threshold_.End(OperationId{i}, 70'000, i == 0 ? 0 : 70'000, true, now_);
    }
  }
  EXPECT_EQ(threshold_.in_force(), kInitial);
}

// Eight are outstanding. A read behind a copy takes its whole round trip; one behind a read comes
// while that is still on its way.
TEST_F(AdaptiveThresholdTest, RoundTripsThatOverlapAreNotEachOnesCost) {
  constexpr uint32_t kDepth = 8;
  constexpr uint64_t kBytes = 20'000;
  bool way[kDepth] = {};
  bool before = false;
  for (uint32_t i = 0; i < 1000; ++i) {
    if (i >= kDepth) {
      const bool read = way[i % kDepth];
      now_ += std::chrono::microseconds(read ? (before ? 12 : 65) : 25);
      before = read;
      threshold_.End(OperationId{i - kDepth}, kBytes, read ? kBytes : 0, true, now_);
    }
    way[i % kDepth] = kBytes >= threshold_.Begin(OperationId{i}, kBytes, now_);
    zero_copies_ += way[i % kDepth] ? 1 : 0;
  }
  EXPECT_EQ(threshold_.in_force(), 16u * 1024);
  EXPECT_GT(zero_copies_, 700u);
}

// What is copied ends at once as long as the peer has buffers left, and is paid for by what follows.
// Three are outstanding. Reads end by fours, and cost less than copies wherever one begins to count.
TEST_F(AdaptiveThresholdTest, WhereARowBeginsAmongTheBunchesInWhichReadsEndIsNotItsCost) {
  uint32_t begun = 0;
  uint32_t ended = 0;
  uint32_t in_bunch = 0;
  std::array<bool, 3> zero_copy{};
  for (uint32_t i = 0; i < 4000; ++i) {
    for (; begun < ended + 3; ++begun) {
      zero_copy[begun % 3] = 70'000 >= threshold_.Begin(OperationId{begun}, 70'000, now_);
    }
    const bool read = zero_copy[ended % 3];
    now_ += !read                 ? std::chrono::microseconds(28)
            : in_bunch++ % 4 == 0 ? std::chrono::microseconds(100)
                                  : std::chrono::microseconds(0);
    threshold_.End(OperationId{ended++}, 70'000, read ? 70'000 : 0, true, now_);
    EXPECT_LE(threshold_.in_force(), 70'000u);
  }
}

TEST_F(AdaptiveThresholdTest, CopiesThatOnlyFillThePeersBuffersDoNotSeemCheap) {
  constexpr int kBuffers = 24;
  constexpr uint64_t kBytes = 100'000;
  threshold_.Start(kInitial, {.count = kBuffers, .bytes = 16 * 1024});
  int filled = 0;  // buffers, seven for each
  for (uint32_t i = 0; i < 2000; ++i) {
    const bool read = kBytes >= threshold_.Begin(OperationId{i}, kBytes, now_);
    const bool waits = read || filled + 7 > kBuffers;
    now_ += std::chrono::microseconds(waits ? (read ? 100 : 180) : 10);
    if (read) now_ += std::chrono::microseconds(24 * std::exchange(filled, 0));
    if (!read && !waits) filled += 7;
    threshold_.End(OperationId{i}, kBytes, read ? kBytes : 0, true, now_);
    zero_copies_ += read ? 1 : 0;
  }
  EXPECT_EQ(threshold_.in_force(), kInitial);
  EXPECT_GT(zero_copies_, 1900u);
}

TEST_F(AdaptiveThresholdTest, WhatWasCancelledTeachesNothing) {
  for (uint32_t i = 0; i < 200; ++i) {
    (void)threshold_.Begin(OperationId{i}, 20'000, now_);
    if (i % 2 == 1) now_ += std::chrono::milliseconds(1);
    threshold_.End(OperationId{i}, 20'000, i % 2 == 0 ? 20'000 : 0, false, now_);
  }
  EXPECT_EQ(threshold_.in_force(), kInitial);
  EXPECT_FALSE(threshold_.waits());
}

TEST_F(AdaptiveThresholdTest, TheSameHistoryLeadsToTheSameState) {
  Run(20'000, 9'000, 3'000);
  AdaptiveThreshold other;
  other.Start(kInitial, {});
  std::swap(other, threshold_);
  now_ = {};
  Run(20'000, 9'000, 3'000);
  Digest one, two;
  other.AddTo(one);
  threshold_.AddTo(two);
  EXPECT_EQ(one.value(), two.value());
}

}  // namespace
}  // namespace esdp::sdp
