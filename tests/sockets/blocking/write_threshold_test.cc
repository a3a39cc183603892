#include "impl/sockets/blocking/write_threshold.h"

#include <gtest/gtest.h>

#include <chrono>

namespace esdp::sockets {
namespace {

using std::chrono::microseconds;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kInitial = 512 * kKiB;

// What a MiB costs in microseconds.
struct Costs {
  int64_t copy = 0, registration = 0, read = 0;
};

class WriteThresholdTest : public ::testing::Test {
 protected:
  void Write(uint64_t bytes, const Costs& costs, int times) {
    for (int i = 0; i < times; ++i) {
      const WriteThreshold::Plan plan = threshold_.Begin(bytes, kInitial);
      zero_copies_ += plan.zero_copy ? 1 : 0;
      measured_ += plan.measured ? 1 : 0;
      const int64_t each = plan.zero_copy ? costs.registration + costs.read : costs.copy;
      if (plan.measured) {
        threshold_.End(bytes, plan, microseconds(each * static_cast<int64_t>(bytes) / (1 << 20)));
      }
    }
  }

  WriteThreshold threshold_;
  int zero_copies_ = 0, measured_ = 0;
};

TEST_F(WriteThresholdTest, WhereMemoryIsReadFasterThanCopiedItFallsToTheSizeThatWasWritten) {
  Write(200 * kKiB, {.copy = 200, .registration = 25, .read = 80}, 200);
  EXPECT_EQ(threshold_.in_force(kInitial), 128 * kKiB);
  EXPECT_GT(zero_copies_, 100);
}

TEST_F(WriteThresholdTest, WhatARegistrationTakesMayMakeItNotWorthIt) {
  const Costs dear{.copy = 200, .registration = 300, .read = 80};
  Write(200 * kKiB, dear, 200);
  EXPECT_EQ(threshold_.in_force(kInitial), kInitial);
  Write(700 * kKiB, dear, 200);
  EXPECT_EQ(threshold_.in_force(kInitial), 1024 * kKiB);
}

TEST_F(WriteThresholdTest, OfCopiedWritesOneIn16IsMeasured) {
  Write(100 * kKiB, {.copy = 100, .registration = 100, .read = 1}, 16 * 6);
  EXPECT_EQ(zero_copies_, 2) << "looks at the other way, until its cost is known";
  EXPECT_EQ(measured_, 6 + zero_copies_);
}

TEST_F(WriteThresholdTest, SmallWritesAreCopiedAndNotMeasured) {
  Write(WriteThreshold::kMin - 1, {.copy = 1000, .registration = 1, .read = 1}, 1000);
  EXPECT_EQ(zero_copies_ + measured_, 0);
  EXPECT_EQ(threshold_.in_force(kInitial), kInitial);
}

}  // namespace
}  // namespace esdp::sockets
