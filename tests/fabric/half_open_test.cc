#include "impl/fabric/half_open.h"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"

namespace esdp::fabric {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLong = HalfOpen::kTimeToSpeak;

Address Ipv4(uint8_t last) {
  Address address;
  address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, last};
  return address;
}

Address Ipv6(uint8_t network, uint8_t host) {
  Address address;
  address.family = Family::kIpv6;
  address.bytes = {0x20, 0x01, 0, 0, 0, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, host};
  return address;
}

class HalfOpenTest : public testing::Test {
 protected:
  uint64_t Add(uint64_t owner, const Address& peer) { return half_open_.Add(owner, peer, now_); }
  // 0: nobody.
  uint64_t Choose() { return half_open_.Choose(now_).value_or(0); }

  HalfOpen half_open_;
  Time now_{std::chrono::seconds(100)};
};

TEST_F(HalfOpenTest, NobodyGoesBeforeItHadTimeToSpeak) {
  EXPECT_EQ(Choose(), 0u);
  Add(1, Ipv4(1));
  now_ += kLong - milliseconds(1);
  EXPECT_EQ(Choose(), 0u);
  Add(2, Ipv4(1));
  now_ += milliseconds(1);
  EXPECT_EQ(Choose(), 1u);
}

TEST_F(HalfOpenTest, TheOldestOfTheAddressThatHasMostGoesFirst) {
  Add(1, Ipv4(1));
  Add(2, Ipv4(2));
  const uint64_t third = Add(3, Ipv4(2));
  now_ += kLong;
  EXPECT_EQ(Choose(), 2u);
  half_open_.Remove(third);
  EXPECT_EQ(Choose(), 1u);
}

TEST_F(HalfOpenTest, WhatHasGoneIsNotChosenWhereverItWas) {
  for (const std::initializer_list<size_t> gone :
       {std::initializer_list<size_t>{0, 1}, {1, 0}, {3, 0, 2}, {1, 2, 0}, {0, 3}, {3, 2, 1, 0}}) {
    HalfOpen half_open;
    std::vector<uint64_t> names;
    for (uint64_t owner = 1; owner <= 4; ++owner) {
      names.push_back(half_open.Add(owner, Ipv4(1), now_));
    }
    std::vector<bool> there(4, true);
    for (const size_t index : gone) {
      half_open.Remove(names[index]);
      half_open.Remove(names[index]);
      there[index] = false;
      const auto first = std::find(there.begin(), there.end(), true);
      const uint64_t expected =
          first == there.end() ? 0 : static_cast<uint64_t>(first - there.begin()) + 1;
      EXPECT_EQ(half_open.Choose(now_ + kLong).value_or(0), expected);
    }
    EXPECT_EQ(half_open.size(), 4 - gone.size());
  }
}

TEST_F(HalfOpenTest, AnAddressWithMoreThanItsShareMakesRoomAtOnceForOthers) {
  for (uint64_t owner = 1; owner <= 9; ++owner) Add(owner, Ipv4(1));
  EXPECT_EQ(Choose(), 0u) << "nobody else is there";
  const uint64_t other = Add(20, Ipv4(2));
  EXPECT_EQ(Choose(), 1u) << "9 of 10";
  Add(21, Ipv4(3));
  Add(22, Ipv4(4));
  EXPECT_EQ(Choose(), 0u) << "9 of 12 are three quarters";
  half_open_.Remove(other);
  EXPECT_EQ(Choose(), 1u);
}

TEST_F(HalfOpenTest, ANetworkOfIpv6IsOneAddress) {
  Add(1, Ipv4(1));
  Add(2, Ipv6(1, 1));
  Add(3, Ipv6(2, 1));
  Add(4, Ipv6(2, 2));
  now_ += kLong;
  EXPECT_EQ(Choose(), 3u);
}

TEST_F(HalfOpenTest, AnOwnerMayBeNamedLater) {
  const uint64_t name = Add(0, Ipv4(1));
  half_open_.SetOwner(name, 7);
  EXPECT_EQ(half_open_.Choose(now_ + kLong), 7u);
}

}  // namespace
}  // namespace esdp::fabric
