#include "tools/esdp_files/chunks.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace esdp_files {
namespace {

constexpr uint64_t kTop = kFileBytesMax;

std::vector<FileExtent> All(Chunks chunks) {
  std::vector<FileExtent> all;
  for (; !chunks.done(); chunks.Skip()) all.push_back(chunks.Peek());
  return all;
}

TEST(ChunksTest, ExtentsAreCutIntoChunksThatCoverThemInOrder) {
  EXPECT_TRUE(Chunks().done());
  EXPECT_TRUE(Chunks({{5, 0}}).done());
  EXPECT_EQ(All(Chunks({{7, 1}})), (std::vector<FileExtent>{{7, 1}}));
  EXPECT_EQ(All(Chunks({{0, kChunkBytes}})), (std::vector<FileExtent>{{0, kChunkBytes}}));
  EXPECT_EQ(All(Chunks({{3, 2 * kChunkBytes + 1}, {0, 0}, {1ull << 40, 9}})),
            (std::vector<FileExtent>{{3, kChunkBytes},
                                     {3 + kChunkBytes, kChunkBytes},
                                     {3 + 2 * kChunkBytes, 1},
                                     {1ull << 40, 9}}));
}

TEST(ChunksTest, TailsSurviveTheWire) {
  const Tail tail{.crc = 0x12345678, .status = 7, .offset = 0x0102030405060708};
  std::array<std::byte, kTailBytes> bytes{};
  StoreTail(tail, bytes);
  EXPECT_EQ(bytes[0], std::byte{0x12});
  EXPECT_EQ(bytes[15], std::byte{0x08});
  EXPECT_EQ(LoadTail(std::span<const std::byte, kTailBytes>(bytes)), tail);
}

TEST(ChunksTest, ExtentsThatCannotBeAreNotSound) {
  const std::vector<FileExtent> good = {{10, 5}, {15, 5}, {30, 1}};
  EXPECT_TRUE(ExtentsAreSound(good, 10, 31, 11));
  EXPECT_TRUE(ExtentsAreSound({}, 10, 31, 0));
  EXPECT_FALSE(ExtentsAreSound(good, 11, 31, 11));  // before the first byte
  EXPECT_FALSE(ExtentsAreSound(good, 10, 30, 11));  // behind the last
  EXPECT_FALSE(ExtentsAreSound(good, 10, 31, 12));  // another sum
  const std::vector<std::vector<FileExtent>> bad = {
      {{10, 5}, {14, 5}},                // they overlap
      {{20, 5}, {10, 5}},                // out of order
      {{10, 0}},                         // empty
      {{10, ~uint64_t{0}}},              // the end is before the beginning
      {{~uint64_t{0}, 2}},               //
      {{0, kTop}, {kTop, kTop}, {1, 1}}  //
  };
  for (const auto& extents : bad) {
    uint64_t sum = 0;
    for (const FileExtent& extent : extents) sum += extent.length;
    EXPECT_FALSE(ExtentsAreSound(extents, 0, kTop, sum));
  }
}

TEST(ChunksTest, TheSumIsCrc32c) {
  const std::string text = "123456789";  // RFC 3720's check value
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(text))), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

}  // namespace
}  // namespace esdp_files
