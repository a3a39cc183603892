#include "impl/base/learned_threshold.h"

#include <gtest/gtest.h>

#include <chrono>

namespace esdp {
namespace {

constexpr uint64_t kKiB = 1024;

void Play(LearnedThreshold& threshold, uint64_t bytes, int64_t copied_ns, int64_t zero_copy_ns) {
  for (int i = 0; i < 200; ++i) {
    const bool zero_copy = bytes >= threshold.Begin(bytes);
    threshold.Learn(bytes, std::chrono::nanoseconds(zero_copy ? zero_copy_ns : copied_ns),
                    zero_copy);
  }
}

TEST(LearnedThreshold, StaysWithinItsBoundsWhateverIsLearned) {
  LearnedThreshold threshold(1, 64 * kKiB);
  EXPECT_EQ(threshold.in_force(), 64 * kKiB);
  Play(threshold, 8 * kKiB, 100'000, 1'000);
  EXPECT_EQ(threshold.in_force(), 64 * kKiB);
  Play(threshold, 8'000 * kKiB, 1'000, 100'000);
  EXPECT_EQ(threshold.in_force(), LearnedThreshold::kMax);
}

TEST(LearnedThreshold, OneOperationOf32GoesTheOtherWay) {
  LearnedThreshold threshold(512 * kKiB, 64 * kKiB);
  int others = 0;
  for (int i = 0; i < 320; ++i) others += 100 * kKiB >= threshold.Begin(100 * kKiB) ? 1 : 0;
  EXPECT_EQ(others, 10);
  for (int i = 0; i < 320; ++i) others += 900 * kKiB < threshold.Begin(900 * kKiB) ? 1 : 0;
  EXPECT_EQ(others, 20);
}

TEST(LearnedThreshold, TheDearerTheOtherWayTheLessOftenItIsTaken) {
  int others[2] = {};
  for (const int64_t dearer : {2, 20}) {
    LearnedThreshold threshold(512 * kKiB, 64 * kKiB);
    for (int i = 0; i < 10'000; ++i) {
      const bool zero_copy = 100 * kKiB >= threshold.Begin(100 * kKiB);
      threshold.Learn(100 * kKiB, std::chrono::nanoseconds(zero_copy ? 1000 * dearer : 1000),
                      zero_copy);
      others[dearer == 20] += zero_copy ? 1 : 0;
    }
    EXPECT_EQ(threshold.in_force(), 512 * kKiB);
  }
  EXPECT_GT(others[0], 30);
  EXPECT_GE(others[1], 5);
  EXPECT_LT(4 * others[1], others[0]);
}

TEST(LearnedThreshold, SizesThatItDoesNotCoverTeachNothing) {
  EXPECT_FALSE(LearnedThreshold::Covers(4095));
  EXPECT_TRUE(LearnedThreshold::Covers(4096));
  EXPECT_TRUE(LearnedThreshold::Covers((8192 * kKiB) - 1));
  EXPECT_FALSE(LearnedThreshold::Covers(8192 * kKiB));
  LearnedThreshold threshold(512 * kKiB, 64 * kKiB);
  Play(threshold, 16'384 * kKiB, 1, 1'000'000);
  Play(threshold, 1, 1'000'000, 1);
  EXPECT_EQ(threshold.in_force(), 512 * kKiB);
}

}  // namespace
}  // namespace esdp
