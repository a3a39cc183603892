#include "impl/sdp/common/policy.h"

#include <gtest/gtest.h>

#include "impl/sdp/interface/config.h"

namespace esdp::sdp {
namespace {

constexpr SendLimits kLimits{2048};

SendTraits Traits(uint64_t length) {
  SendTraits traits;
  traits.length = length;
  traits.zcopy_min = 4096;
  traits.exposable = true;
  return traits;
}

TEST(SendPolicyTest, TheThresholdDecides) {
  EXPECT_FALSE(WantsAdvert(Traits(4095)));
  EXPECT_TRUE(WantsAdvert(Traits(4096)));
}

TEST(SendPolicyTest, WhatIsSmallIsCopiedTogetherWithItsNeighbours) {
  EXPECT_EQ(RouteOfCopied(Traits(2048), kLimits), SendRoute::kCopy);
  EXPECT_EQ(RouteOfCopied(Traits(2049), kLimits), SendRoute::kGather);
}

TEST(SendPolicyTest, WhatTheProcessorDoesNotReachIsNeverCopied) {
  SendTraits traits = Traits(1);
  traits.copyable = false;
  EXPECT_EQ(RouteOfCopied(traits, kLimits), SendRoute::kGather);
}

TEST(SendPolicyTest, APathAskedForOverridesTheThreshold) {
  SendTraits traits = Traits(2);
  traits.path = Path::kZeroCopy;
  EXPECT_TRUE(WantsAdvert(traits));
  traits = Traits(1 << 20);
  traits.path = Path::kCopy;
  EXPECT_FALSE(WantsAdvert(traits));
}

TEST(SendPolicyTest, AnAdvertNeedsAByteBesideTheInlineOne) {
  SendTraits traits = Traits(1);
  traits.path = Path::kZeroCopy;
  EXPECT_FALSE(WantsAdvert(traits));
}

TEST(SendPolicyTest, MemoryThatMayNotBeShownIsSent) {
  SendTraits traits = Traits(1 << 20);
  traits.exposable = false;
  EXPECT_FALSE(WantsAdvert(traits));
}

TEST(SendPolicyTest, ZeroMeansAlwaysAndNeverMeansNever) {
  SendTraits traits = Traits(2);
  traits.zcopy_min = 0;
  EXPECT_TRUE(WantsAdvert(traits));
  traits = Traits(Config::kNever);
  traits.zcopy_min = Config::kNever;
  EXPECT_FALSE(WantsAdvert(traits));
}

ReceiveRoom Room(uint32_t length) {
  ReceiveRoom room;
  room.range.length = length;
  room.zcopy_min = 4096;
  room.placeable = true;
  return room;
}

TEST(ReceivePolicyTest, AReceiveAtTheThresholdOrForAllThatIsLeftIsReadInto) {
  EXPECT_TRUE(ReadsIntoRoom(Room(4096), 100000, true));
  EXPECT_FALSE(ReadsIntoRoom(Room(4095), 100000, true));
  EXPECT_TRUE(ReadsIntoRoom(Room(100), 100, true));
  EXPECT_FALSE(ReadsIntoRoom(Room(99), 100, true));
}

TEST(ReceivePolicyTest, WhatCannotBeReadIsAskedFor) {
  ReceiveRoom unplaceable = Room(8192);
  unplaceable.placeable = false;
  EXPECT_FALSE(ReadsIntoRoom(unplaceable, 100, true));
  EXPECT_FALSE(ReadsIntoRoom(Room(8192), 100, false));
}

TEST(ReceivePolicyTest, APathAskedForOverridesTheThreshold) {
  ReceiveRoom room = Room(1);
  room.path = Path::kZeroCopy;
  EXPECT_TRUE(ReadsIntoRoom(room, 1 << 20, true));
  room = Room(1 << 20);
  room.path = Path::kCopy;
  EXPECT_FALSE(ReadsIntoRoom(room, 10, true));
  room = Room(1 << 20);
  room.zcopy_min = Config::kNever;
  EXPECT_FALSE(ReadsIntoRoom(room, 10, true));
}

}  // namespace
}  // namespace esdp::sdp
