#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "impl/fabric/soft/key_source.h"
#include "impl/fabric/soft/region_table.h"

namespace esdp::fabric::soft {
namespace {

constexpr QueuePairId kOne{1};
constexpr uint64_t kFirst = 1000;
constexpr Access kAll{.local_write = true, .remote_read = true, .remote_write = true};

// Gives what it was given, then nothing.
class Script final : public KeySource {
 public:
  explicit Script(std::deque<uint32_t> numbers) : numbers_(std::move(numbers)) {}
  std::optional<uint32_t> Draw() override {
    if (numbers_.empty()) return std::nullopt;
    const uint32_t number = numbers_.front();
    numbers_.pop_front();
    return number;
  }
  uint64_t FirstAddress() override { return kFirst; }

 private:
  std::deque<uint32_t> numbers_;
};

class RegionKeysTest : public ::testing::Test {
 protected:
  RegionTable Table(std::deque<uint32_t> numbers) {
    return RegionTable(std::make_unique<Script>(std::move(numbers)));
  }
  std::array<std::byte, 64> memory_{};
};

TEST_F(RegionKeysTest, ARegionBeginsAtTheAddressOfItsKeyAndAWindowAtZero) {
  RegionTable table = Table({7, 8});
  const RegionId region = *table.Register(memory_.data(), 64, kAll);
  const RemoteRange window = *table.Bind(kOne, region, memory_.data() + 8, 8, kAll);

  EXPECT_EQ(*table.RegionKey(region), (RemoteRange{7, kFirst}));
  EXPECT_EQ(window, (RemoteRange{8, 0}));
  EXPECT_EQ(table.Resolve(kOne, 7, kFirst, 64, TagRight::kRead).data, memory_.data());
  EXPECT_EQ(table.Resolve(kOne, 7, kFirst + 63, 1, TagRight::kRead).data, memory_.data() + 63);
  EXPECT_EQ(table.Resolve(kOne, 7, kFirst + 63, 2, TagRight::kRead).error, TagError::kBounds);
  EXPECT_EQ(table.Resolve(kOne, 7, kFirst - 1, 1, TagRight::kRead).error, TagError::kBounds);
  EXPECT_EQ(table.Resolve(kOne, 7, 0, 1, TagRight::kRead).error, TagError::kBounds);
  EXPECT_EQ(table.Resolve(kOne, 8, 0, 8, TagRight::kRead).data, memory_.data() + 8);
}

TEST_F(RegionKeysTest, ZeroLiveKeysAndThoseWithdrawnLatelyAreDrawnAgain) {
  RegionTable table = Table({0, 7, 7, 8, 8, 7, 9});
  const RegionId region = *table.Register(memory_.data(), 64, kAll);
  EXPECT_EQ(table.RegionKey(region)->key, 7u);
  EXPECT_EQ(table.Bind(kOne, region, memory_.data(), 8, kAll)->key, 8u);
  EXPECT_EQ(table.Invalidate(kOne, 8), TagError::kNone);

  EXPECT_EQ(table.Bind(kOne, region, memory_.data(), 8, kAll)->key, 9u);
}

TEST_F(RegionKeysTest, WithoutAKeyNothingIsRegisteredOrBound) {
  RegionTable table = Table({7});
  const RegionId region = *table.Register(memory_.data(), 64, kAll);

  EXPECT_TRUE(absl::IsUnavailable(table.Register(memory_.data(), 64, kAll).status()));
  EXPECT_TRUE(absl::IsUnavailable(table.Bind(kOne, region, memory_.data(), 8, kAll).status()));
  EXPECT_TRUE(table.Register(memory_.data(), 64, {}).ok()) << "nobody else is to reach it";

  EXPECT_EQ(table.regions(), 2u);
  EXPECT_EQ(table.windows(), 0u);
  EXPECT_EQ(table.registered_bytes(), 128u);
  EXPECT_TRUE(table.Deregister(region).ok());
}

TEST_F(RegionKeysTest, RegionsWindowsAndBytesAreCounted) {
  RegionTable table = Table({1, 2, 3});
  const RegionId shown = *table.Register(memory_.data(), 64, kAll);
  const RegionId hidden = *table.Register(memory_.data(), 16, {});
  ASSERT_TRUE(table.Bind(kOne, shown, memory_.data(), 8, kAll).ok());
  ASSERT_TRUE(table.Bind(kOne, hidden, memory_.data(), 8, {.remote_read = true}).ok());
  EXPECT_EQ(table.regions(), 2u);
  EXPECT_EQ(table.windows(), 2u);
  EXPECT_EQ(table.registered_bytes(), 80u);

  table.InvalidateAll(kOne);
  EXPECT_TRUE(table.Deregister(shown).ok());

  EXPECT_EQ(table.regions(), 1u);
  EXPECT_EQ(table.windows(), 0u);
  EXPECT_EQ(table.registered_bytes(), 16u);
}

TEST_F(RegionKeysTest, WhatIsWrittenIsCountedFromTheFirstByteOnAndWithoutGaps) {
  RegionTable table = Table({1, 2});
  const RegionId region = *table.Register(memory_.data(), 64, kAll);
  ASSERT_EQ(table.Bind(kOne, region, memory_.data(), 32, kAll)->key, 2u);

  table.NoteWritten(2, 8, 8);
  EXPECT_EQ(table.Written(kOne, 2), 0u) << "a gap is before it";
  table.NoteWritten(2, 0, 8);
  EXPECT_EQ(table.Written(kOne, 2), 8u);
  table.NoteWritten(2, 4, 8);
  EXPECT_EQ(table.Written(kOne, 2), 12u);
  table.NoteWritten(2, 0, 4);
  EXPECT_EQ(table.Written(kOne, 2), 12u);

  EXPECT_EQ(table.Written(QueuePairId{2}, 2), kWrittenUnknown);
  EXPECT_EQ(table.Written(kOne, 1), kWrittenUnknown) << "a region's own key is no window";
  EXPECT_EQ(table.Written(kOne, 3), kWrittenUnknown);
}

}  // namespace
}  // namespace esdp::fabric::soft
