#include "impl/fabric/soft/region_table.h"

#include <array>
#include <set>

#include "gtest/gtest.h"

namespace esdp::fabric::soft {
namespace {

constexpr QueuePairId kOne{1};
constexpr QueuePairId kTwo{2};
constexpr Access kAll{.local_write = true, .remote_read = true, .remote_write = true};

class RegionTableTest : public ::testing::Test {
 protected:
  RegionTableTest() { region_ = *table_.Register(memory_.data(), memory_.size(), kAll); }

  uint32_t Bind(size_t offset, size_t length, Access access = kAll) {
    return table_.Bind(kOne, region_, memory_.data() + offset, length, access)->key;
  }
  TagError Try(uint32_t key, uint64_t offset, uint64_t length, TagRight right = TagRight::kRead,
               QueuePairId queue_pair = kOne) {
    return table_.Resolve(queue_pair, key, offset, length, right).error;
  }

  std::array<std::byte, 256> memory_{};
  RegionTable table_;
  RegionId region_{};
};

TEST_F(RegionTableTest, ATagShowsItsRangeFromOffsetZero) {
  const uint32_t key = Bind(16, 32);

  EXPECT_EQ(table_.Resolve(kOne, key, 0, 32, TagRight::kRead).data, memory_.data() + 16);
  EXPECT_EQ(table_.Resolve(kOne, key, 31, 1, TagRight::kWrite).data, memory_.data() + 47);
}

TEST_F(RegionTableTest, EachWayToMissHasItsOwnError) {
  const uint32_t key = Bind(16, 32);
  const uint32_t read_only = Bind(16, 32, {.remote_read = true});

  EXPECT_EQ(Try(key ^ 1, 0, 1), TagError::kInvalid);
  EXPECT_EQ(Try(0, 0, 1), TagError::kInvalid);
  EXPECT_EQ(Try(key, 0, 1, TagRight::kRead, kTwo), TagError::kOtherStream);
  EXPECT_EQ(Try(key, 0, 33), TagError::kBounds);
  EXPECT_EQ(Try(key, 32, 1), TagError::kBounds);
  EXPECT_EQ(Try(key, UINT64_MAX, 2), TagError::kWraps);
  EXPECT_EQ(Try(key, UINT64_MAX - 31, 32), TagError::kWraps);
  EXPECT_EQ(Try(read_only, 0, 1, TagRight::kWrite), TagError::kRights);
  EXPECT_EQ(Try(read_only, 0, 1, TagRight::kRead), TagError::kNone);
}

TEST_F(RegionTableTest, ARegionsOwnKeyServesEveryQueuePair) {
  const RemoteRange key = *table_.RegionKey(region_);

  EXPECT_EQ(Try(key.key, key.address, 256, TagRight::kRead, kOne), TagError::kNone);
  EXPECT_EQ(Try(key.key, key.address, 256, TagRight::kWrite, kTwo), TagError::kNone);
  EXPECT_EQ(table_.Invalidate(kOne, key.key), TagError::kRights) << "it is no window";
}

TEST_F(RegionTableTest, AWithdrawnTagIsLikeOneThatNeverWas) {
  const uint32_t key = Bind(0, 8);
  EXPECT_TRUE(table_.IsWindow(kOne, key));
  EXPECT_FALSE(table_.IsWindow(kTwo, key));
  EXPECT_EQ(table_.Invalidate(kTwo, key), TagError::kOtherStream);

  EXPECT_EQ(table_.Invalidate(kOne, key), TagError::kNone);

  EXPECT_EQ(Try(key, 0, 1), TagError::kInvalid);
  EXPECT_EQ(table_.Invalidate(kOne, key), TagError::kInvalid);
  EXPECT_FALSE(table_.IsWindow(kOne, key));
}

TEST_F(RegionTableTest, InvalidateAllTakesTheWindowsOfOneQueuePairOnly) {
  const uint32_t mine = Bind(0, 8);
  const uint32_t other = table_.Bind(kTwo, region_, memory_.data(), 8, kAll)->key;

  table_.InvalidateAll(kOne);

  EXPECT_EQ(Try(mine, 0, 1), TagError::kInvalid);
  EXPECT_EQ(Try(other, 0, 1, TagRight::kRead, kTwo), TagError::kNone);
  table_.InvalidateAll(kTwo);
  EXPECT_EQ(table_.tags(), 1u) << "the region's own key stays";
  EXPECT_TRUE(table_.Deregister(region_).ok());
  EXPECT_EQ(table_.tags(), 0u);
}

TEST_F(RegionTableTest, TagsDoNotComeBackSoonAndFollowNoPattern) {
  std::set<uint32_t> seen;
  uint32_t differing_bits = 0;
  for (int i = 0; i < 2000; ++i) {
    const uint32_t key = Bind(0, 8);
    EXPECT_NE(key, 0u);
    EXPECT_TRUE(seen.insert(key).second) << "a tag came back after " << i << " others";
    differing_bits |= key ^ *seen.begin();
    table_.Invalidate(kOne, key);
  }
  EXPECT_EQ(differing_bits, UINT32_MAX) << "some bit never changed";
}

TEST_F(RegionTableTest, AnEntryHasToLieInItsRegion) {
  const auto check = [&](ptrdiff_t offset, uint32_t length) {
    return table_.CheckLocal({region_, memory_.data() + offset, length}, true).code();
  };

  EXPECT_EQ(check(0, 256), absl::StatusCode::kOk);
  EXPECT_EQ(check(256, 0), absl::StatusCode::kOk);
  EXPECT_EQ(check(0, 257), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(check(256, 1), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(check(-1, 1), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(check(1, UINT32_MAX), absl::StatusCode::kOutOfRange);
}

TEST_F(RegionTableTest, ARegionIsHeldUntilEveryHoldIsReleased) {
  table_.Hold(region_);
  table_.Hold(region_);
  table_.Release(region_);
  EXPECT_TRUE(absl::IsFailedPrecondition(table_.Deregister(region_)));

  table_.Release(region_);

  EXPECT_TRUE(table_.Deregister(region_).ok());
  EXPECT_TRUE(absl::IsNotFound(table_.Deregister(region_)));
}

}  // namespace
}  // namespace esdp::fabric::soft
