#include "impl/sockets/stream/receive_ranges.h"

#include <array>

#include "gtest/gtest.h"

namespace esdp::sockets {
namespace {

constexpr OpId kOne{1};
constexpr OpId kOther{2};

class ReceiveRangesTest : public ::testing::Test {
 protected:
  bool Claim(OpId by, size_t offset, size_t length) {
    return ranges_.Claim(by, std::span(memory_).subspan(offset, length));
  }

  std::array<std::byte, 1000> memory_{};
  ReceiveRanges ranges_;
};

TEST_F(ReceiveRangesTest, NoByteIsClaimedTwice) {
  EXPECT_TRUE(Claim(kOne, 100, 50));
  EXPECT_FALSE(Claim(kOther, 100, 50));
  EXPECT_FALSE(Claim(kOther, 149, 1));
  EXPECT_FALSE(Claim(kOther, 99, 2));
  EXPECT_FALSE(Claim(kOther, 120, 5));
  EXPECT_FALSE(Claim(kOther, 0, 1000));
  EXPECT_TRUE(Claim(kOther, 150, 10));
  EXPECT_TRUE(Claim(kOther, 90, 10));
}

TEST_F(ReceiveRangesTest, AnOperationIsInItsOwnWayToo) {
  EXPECT_TRUE(Claim(kOne, 0, 10));
  EXPECT_FALSE(Claim(kOne, 9, 10));
}

TEST_F(ReceiveRangesTest, NoBytesAreInNobodysWay) {
  EXPECT_TRUE(Claim(kOne, 100, 0));
  EXPECT_TRUE(Claim(kOther, 100, 10));
  EXPECT_TRUE(Claim(kOne, 105, 0));
}

TEST_F(ReceiveRangesTest, WhatAnOperationReleasesMayBeClaimedAgainAndNothingElse) {
  EXPECT_TRUE(Claim(kOne, 0, 10));
  EXPECT_TRUE(Claim(kOther, 10, 10));
  EXPECT_TRUE(Claim(kOne, 20, 10));
  ranges_.Release(kOne);
  EXPECT_FALSE(Claim(kOne, 5, 10));
  EXPECT_TRUE(Claim(kOne, 0, 10));
  EXPECT_TRUE(Claim(kOther, 20, 10));
}

TEST_F(ReceiveRangesTest, WhatIsRefusedIsNotClaimed) {
  EXPECT_TRUE(Claim(kOne, 50, 10));
  EXPECT_FALSE(Claim(kOther, 0, 51));
  EXPECT_TRUE(Claim(kOne, 0, 50));
}

}  // namespace
}  // namespace esdp::sockets
