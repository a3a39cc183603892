#include "impl/sockets/memory/spare_memory.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sockets/memory/owned_memory.h"

namespace esdp::sockets {
namespace {

constexpr size_t kBytes = size_t{64} << 10;

// What is asked for here is asked of the system alone: a page that is not mapped.
bool IsMapped(const std::byte* memory) {
  unsigned char resident = 0;
  return mincore(const_cast<std::byte*>(memory), kPageBytes, &resident) == 0;
}

TEST(SpareMemoryTest, WhatWasGivenIsTakenAgain) {
  SpareMemory spare;
  OwnedMemory memory = spare.Take(kBytes);
  ASSERT_NE(memory, nullptr);
  std::byte* const at = memory.get();
  spare.Give(std::move(memory));
  EXPECT_TRUE(IsMapped(at));
  const OwnedMemory again = spare.Take(kBytes);
  EXPECT_EQ(again.get(), at);
  EXPECT_NE(spare.Take(kBytes).get(), at) << "two have it";
}

TEST(SpareMemoryTest, ASizeThatEndsInsideAPageIsTakenAgainToo) {
  SpareMemory spare;
  OwnedMemory memory = spare.Take(kBytes + 1);
  std::byte* const at = memory.get();
  at[kBytes] = std::byte{1};
  spare.Give(std::move(memory));
  EXPECT_EQ(spare.Take(kBytes + 2).get(), at);
}

TEST(SpareMemoryTest, AnotherSizeIsMappedAnew) {
  SpareMemory spare;
  OwnedMemory memory = spare.Take(kBytes);
  std::byte* const at = memory.get();
  spare.Give(std::move(memory));
  const OwnedMemory longer = spare.Take(2 * kBytes);
  ASSERT_NE(longer, nullptr);
  longer.get()[2 * kBytes - 1] = std::byte{1};
  EXPECT_EQ(spare.Take(kBytes).get(), at) << "it is still there";
}

TEST(SpareMemoryTest, NoMoreIsKeptThanAFewMappings) {
  SpareMemory spare;
  std::vector<OwnedMemory> taken;
  std::vector<std::byte*> at;
  for (size_t i = 0; i < SpareMemory::kMappingsMax + 2; ++i) {
    at.push_back(taken.emplace_back(spare.Take(kBytes)).get());
  }
  for (OwnedMemory& memory : taken) spare.Give(std::move(memory));
  for (size_t i = 0; i < at.size(); ++i) {
    EXPECT_EQ(IsMapped(at[i]), i < SpareMemory::kMappingsMax) << i;
  }
}

TEST(SpareMemoryTest, NoMoreIsKeptThanItsBytes) {
  SpareMemory spare;
  OwnedMemory all = spare.Take(SpareMemory::kBytesMax);
  OwnedMemory more = spare.Take(kBytes);
  const std::byte* const at = more.get();
  spare.Give(std::move(all));
  spare.Give(std::move(more));
  EXPECT_FALSE(IsMapped(at));
  all = spare.Take(SpareMemory::kBytesMax);
  spare.Give(spare.Take(kBytes));
  more = spare.Take(kBytes);
  EXPECT_NE(more, nullptr) << "what was taken does not count";
}

TEST(SpareMemoryTest, WhatItKeepsGoesWithIt) {
  const std::byte* at = nullptr;
  {
    SpareMemory spare;
    OwnedMemory memory = spare.Take(kBytes);
    at = memory.get();
    spare.Give(std::move(memory));
  }
  EXPECT_FALSE(IsMapped(at));
}

TEST(SpareMemoryTest, MemoryThatCameFromElsewhereIsNotKept) {
  SpareMemory spare;
  OwnedMemory memory = MapMemory(kBytes, Pages::kSmall);
  const std::byte* const at = memory.get();
  spare.Give(std::move(memory));
  EXPECT_FALSE(IsMapped(at));
}

TEST(SpareMemoryTest, MoreThanThereIsIsNull) {
  SpareMemory spare;
  EXPECT_EQ(spare.Take(SIZE_MAX), nullptr);
  EXPECT_EQ(spare.Take(0), nullptr);
}

}  // namespace
}  // namespace esdp::sockets
