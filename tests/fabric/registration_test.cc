#include "impl/fabric/registration.h"

#include <array>

#include "gtest/gtest.h"

namespace esdp::fabric {
namespace {

using absl::StatusCode;

class RegistrationTest : public ::testing::Test {
 protected:
  ScatterEntry Entry(size_t offset, uint32_t length) {
    return {RegionId{1}, memory_.data() + offset, length};
  }

  std::array<std::byte, 300> memory_{};
  Registration region_{memory_.data() + 100, 100, {.local_write = true}};
};

TEST_F(RegistrationTest, ItContainsWhatIsWhollyInside) {
  const std::byte* const base = region_.base;
  EXPECT_TRUE(region_.Contains(base, 100));
  EXPECT_TRUE(region_.Contains(base + 99, 1));
  EXPECT_TRUE(region_.Contains(base + 100, 0));
  EXPECT_FALSE(region_.Contains(base + 99, 2));
  EXPECT_FALSE(region_.Contains(base + 101, 0));
  EXPECT_FALSE(region_.Contains(base - 1, 1));
  EXPECT_FALSE(region_.Contains(base - 1, 101));
  EXPECT_FALSE(region_.Contains(base + 50, ~uint64_t{0}));
  EXPECT_FALSE(region_.Contains(nullptr, 1));
}

TEST_F(RegistrationTest, MemoryThatIsNoneOrTooLongOrWrapsIsNotRegistered) {
  EXPECT_TRUE(CheckRange(region_.base, 100, 100).ok());
  EXPECT_EQ(CheckRange(region_.base, 101, 100).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(CheckRange(region_.base, ~uint64_t{0}, ~uint64_t{0}).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(CheckRange(region_.base, 0, 100).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckRange(nullptr, 1, 100).code(), StatusCode::kInvalidArgument);
}

TEST_F(RegistrationTest, AnEntryIsInsideAndWhereItIsWrittenToMayBe) {
  EXPECT_TRUE(CheckEntry(&region_, Entry(100, 100), true).ok());
  EXPECT_EQ(CheckEntry(&region_, Entry(99, 2), false).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(CheckEntry(nullptr, Entry(100, 1), false).code(), StatusCode::kNotFound);
  region_.access.local_write = false;
  EXPECT_TRUE(CheckEntry(&region_, Entry(100, 100), false).ok());
  EXPECT_EQ(CheckEntry(&region_, Entry(100, 1), true).code(), StatusCode::kFailedPrecondition);
}

TEST_F(RegistrationTest, AWindowShowsSomethingInsideThatMayBeDoneThere) {
  const Access writes{.remote_write = true};
  EXPECT_TRUE(CheckWindow(&region_, region_.base, 100, writes).ok());
  EXPECT_EQ(CheckWindow(&region_, region_.base, 0, writes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckWindow(&region_, region_.base, 101, writes).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(CheckWindow(nullptr, region_.base, 1, writes).code(), StatusCode::kNotFound);
  region_.access.local_write = false;
  EXPECT_EQ(CheckWindow(&region_, region_.base, 1, writes).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(CheckWindow(&region_, region_.base, 1, {.remote_read = true}).ok());
}

TEST_F(RegistrationTest, ItIsUsedWhileWorkOrWindowsNameItAndHasAKeyForARemoteRight) {
  EXPECT_TRUE(CheckUnused(&region_).ok());
  region_.work = 1;
  EXPECT_EQ(CheckUnused(&region_).code(), StatusCode::kFailedPrecondition);
  region_.work = 0;
  region_.windows = 1;
  EXPECT_EQ(CheckUnused(&region_).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckUnused(nullptr).code(), StatusCode::kNotFound);
  EXPECT_EQ(CheckRegionKey(&region_).code(), StatusCode::kFailedPrecondition);
  region_.access.remote_read = true;
  EXPECT_TRUE(CheckRegionKey(&region_).ok());
  EXPECT_EQ(CheckRegionKey(nullptr).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace esdp::fabric
