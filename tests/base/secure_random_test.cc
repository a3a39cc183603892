#include "impl/base/secure_random.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace esdp {
namespace {

TEST(SecureRandomTest, FillsEveryByte) {
  std::array<std::byte, 4096> bytes{};
  ASSERT_TRUE(FillSecureRandom(bytes));
  // 16 zero bytes on average; a half that was never written would have 2048.
  for (const auto half : {Bytes(bytes).first(2048), Bytes(bytes).last(2048)}) {
    EXPECT_LT(std::count(half.begin(), half.end(), std::byte{0}), 100);
  }
}

TEST(SecureRandomTest, FillingNothingSucceeds) { EXPECT_TRUE(FillSecureRandom(Bytes())); }

TEST(SecureRandomTest, TwoSeedsDiffer) {
  const auto a = SecureRandomSeed();
  const auto b = SecureRandomSeed();
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
}

TEST(SecureRandomTest, NumbersDoNotRepeatAcrossRefills) {
  SecureRandom random;
  std::set<uint32_t> seen;
  int repeats = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto number = random.Next32();
    ASSERT_TRUE(number);
    repeats += seen.insert(*number).second ? 0 : 1;
  }
  // One accidental repeat among a thousand happens once in 8600 runs, two once in 150 million.
  EXPECT_LE(repeats, 1);
}

TEST(SecureRandomTest, TwoGeneratorsShareNothing) {
  SecureRandom a;
  SecureRandom b;
  int same = 0;
  for (int i = 0; i < 64; ++i) same += a.Next32() == b.Next32() ? 1 : 0;
  EXPECT_LE(same, 1);
}

}  // namespace
}  // namespace esdp
