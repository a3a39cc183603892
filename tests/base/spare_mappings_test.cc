#include "impl/base/spare_mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace esdp {
namespace {

class SpareMappingsTest : public testing::Test {
 protected:
  std::byte* Map(size_t pages) const {
    return static_cast<std::byte*>(
        mmap(nullptr, pages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  bool IsMapped(std::byte* base) const {
    unsigned char resident = 0;
    return mincore(base, page_, &resident) == 0;
  }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
};

TEST_F(SpareMappingsTest, OneIsTakenBySizeTheLastFirst) {
  SpareMappings spares(3, 16 * page_);
  const std::vector<std::byte*> all = {Map(1), Map(2), Map(1)};
  EXPECT_TRUE(spares.Keep(all[0], page_));
  EXPECT_TRUE(spares.Keep(all[1], 2 * page_));
  EXPECT_TRUE(spares.Keep(all[2], page_));
  EXPECT_EQ(spares.Take(3 * page_), nullptr);
  EXPECT_EQ(spares.Take(page_), all[2]);
  EXPECT_EQ(spares.Take(page_), all[0]);
  EXPECT_EQ(spares.Take(page_), nullptr);
  EXPECT_EQ(spares.Take(2 * page_), all[1]);
  for (size_t i = 0; i < all.size(); ++i) munmap(all[i], (i == 1 ? 2 : 1) * page_);
}

TEST_F(SpareMappingsTest, WhatHasNoRoomStaysTheCallers) {
  std::byte* const one = Map(2);
  std::byte* const two = Map(2);
  {
    SpareMappings few(1, 16 * page_), small(8, 3 * page_), none(0, 16 * page_);
    EXPECT_FALSE(none.Keep(one, 2 * page_));
    EXPECT_TRUE(few.Keep(one, 2 * page_));
    EXPECT_FALSE(few.Keep(two, 2 * page_));
    EXPECT_EQ(few.Take(2 * page_), one);
    EXPECT_TRUE(small.Keep(one, 2 * page_));
    EXPECT_FALSE(small.Keep(two, 2 * page_));
  }
  EXPECT_FALSE(IsMapped(one));
  EXPECT_TRUE(IsMapped(two));
  munmap(two, 2 * page_);
}

TEST_F(SpareMappingsTest, WhatIsClearedIsUnmappedAndMakesRoom) {
  SpareMappings spares(1, page_);
  std::byte* const one = Map(1);
  EXPECT_TRUE(spares.Keep(one, page_));
  spares.Clear();
  EXPECT_FALSE(IsMapped(one));
  EXPECT_TRUE(spares.Keep(Map(1), page_));
}

}  // namespace
}  // namespace esdp
