#include "impl/base/bytes.h"

#include <array>
#include <cstdint>

#include "gtest/gtest.h"

namespace esdp {
namespace {

constexpr std::array<std::byte, 9> kCounting = {std::byte{0x01}, std::byte{0x82}, std::byte{0x03},
                                                std::byte{0x84}, std::byte{0x05}, std::byte{0x86},
                                                std::byte{0x07}, std::byte{0x88}, std::byte{0x09}};

TEST(BytesTest, TheFirstByteIsTheMostSignificant) {
  EXPECT_EQ(LoadBigEndian<uint8_t>(kCounting, 1), 0x82u);
  EXPECT_EQ(LoadBigEndian<uint16_t>(kCounting, 1), 0x8203u);
  EXPECT_EQ(LoadBigEndian<uint32_t>(kCounting, 1), 0x82038405u);
  EXPECT_EQ(LoadBigEndian<uint64_t>(kCounting, 1), 0x8203840586078809u);
}

TEST(BytesTest, StoringWritesItsOwnBytesAndNoOther) {
  std::array<std::byte, 6> bytes;
  bytes.fill(std::byte{0xee});
  StoreBigEndian<uint32_t>(bytes, 1, 0x01020384u);
  const std::array<std::byte, 6> wanted = {std::byte{0xee}, std::byte{0x01}, std::byte{0x02},
                                           std::byte{0x03}, std::byte{0x84}, std::byte{0xee}};
  EXPECT_EQ(bytes, wanted);
}

TEST(BytesTest, WhatIsStoredIsLoadedAgainAtEverySize) {
  std::array<std::byte, 8> bytes{};
  StoreBigEndian<uint64_t>(bytes, 0, UINT64_MAX - 1);
  EXPECT_EQ(LoadBigEndian<uint64_t>(bytes, 0), UINT64_MAX - 1);
  StoreBigEndian<uint16_t>(bytes, 6, 0xfedc);
  EXPECT_EQ(LoadBigEndian<uint16_t>(bytes, 6), 0xfedc);
  StoreBigEndian<uint8_t>(bytes, 7, 0x80);
  EXPECT_EQ(LoadBigEndian<uint16_t>(bytes, 6), 0xfe80);
}

TEST(BytesTest, CopyingTakesAllOfTheSourceAndLeavesTheRest) {
  std::array<std::byte, 4> to{};
  CopyBytes(to, ConstBytes(kCounting).first(3));
  EXPECT_EQ(to[2], std::byte{0x03});
  EXPECT_EQ(to[3], std::byte{0});
}

TEST(BytesTest, CopyingNothingIsAllowedEvenFromAndToNowhere) { CopyBytes(Bytes(), ConstBytes()); }

}  // namespace
}  // namespace esdp
