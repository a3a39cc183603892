#include "tools/esdp_perf/pattern.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace esdp_perf {
namespace {

constexpr uint64_t kSeed = 7;

TEST(PatternTest, IsTheSameHoweverTheStreamIsCut) {
  std::vector<std::byte> whole(1000), pieces(1000);
  FillPattern(kSeed, 3, 0, whole);
  for (size_t at = 0, length = 1; at < pieces.size(); at += length, length = length % 13 + 1) {
    length = std::min(length, pieces.size() - at);
    FillPattern(kSeed, 3, at, std::span(pieces).subspan(at, length));
  }
  EXPECT_EQ(whole, pieces);
}

TEST(PatternTest, FindsEveryChangedByte) {
  std::vector<std::byte> data(64);
  FillPattern(kSeed, 0, 5, data);
  ASSERT_FALSE(FindMismatch(kSeed, 0, 5, data).has_value());
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] ^= std::byte{0x10};
    EXPECT_EQ(FindMismatch(kSeed, 0, 5, data), 5 + i);
    data[i] ^= std::byte{0x10};
  }
}

TEST(PatternTest, FindsBytesOfAnotherPlaceConnectionOrSeed) {
  std::vector<std::byte> data(64);
  FillPattern(kSeed, 1, 4096, data);
  EXPECT_TRUE(FindMismatch(kSeed, 1, 4097, data).has_value());
  EXPECT_TRUE(FindMismatch(kSeed, 2, 4096, data).has_value());
  EXPECT_TRUE(FindMismatch(kSeed + 1, 1, 4096, data).has_value());
}

}  // namespace
}  // namespace esdp_perf
