#include "tools/esdp_serve/weights.h"

#include <gtest/gtest.h>

#include <string>

namespace esdp_serve {
namespace {

uint32_t Of(const Weights& weights, const std::string& client) {
  const auto address = esdp::Address::Parse(client);
  EXPECT_TRUE(address.ok()) << client;
  return weights.Of(*address);
}

TEST(WeightsTest, TheRuleWithTheMostBitsCountsAndOneWithoutARuleHasOneShare) {
  Weights weights;
  for (const char* const rule : {"10.0.0.0/8=2", "10.1.0.0/16=3", "10.1.2.3=50", "2001:db8::/33=4",
                                 "[2001:db8::1]=5", "192.0.2.128/25=6"}) {
    EXPECT_TRUE(weights.Add(rule).ok()) << rule;
  }
  EXPECT_EQ(Of(weights, "11.1.2.3:5"), 1u);
  EXPECT_EQ(Of(weights, "10.200.0.1:5"), 2u);
  EXPECT_EQ(Of(weights, "10.1.9.9:1"), 3u);
  EXPECT_EQ(Of(weights, "10.1.2.3:9"), 50u);
  EXPECT_EQ(Of(weights, "[2001:db8:7fff::9]:1"), 4u);
  EXPECT_EQ(Of(weights, "[2001:db8:8000::9]:1"), 1u);
  EXPECT_EQ(Of(weights, "[2001:db8::1]:1"), 5u);
  EXPECT_EQ(Of(weights, "192.0.2.129:1"), 6u);
  EXPECT_EQ(Of(weights, "192.0.2.127:1"), 1u);
  // An IPv6 address is none of IPv4's, whatever its last bytes are.
  EXPECT_EQ(Of(weights, "[::10.1.2.3]:1"), 1u);
  EXPECT_TRUE(weights.Add("10.1.2.3=7").ok());
  EXPECT_EQ(Of(weights, "10.1.2.3:9"), 7u);
}

TEST(WeightsTest, NoBitsAreEverybodyOfThatFamily) {
  Weights weights;
  ASSERT_TRUE(weights.Add("0.0.0.0/0=9").ok());
  EXPECT_EQ(Of(weights, "203.0.113.7:1"), 9u);
  EXPECT_EQ(Of(weights, "[::1]:1"), 1u);
}

TEST(WeightsTest, WhatIsNoRuleIsRefused) {
  Weights weights;
  for (const char* const rule : {"", "=", "10.0.0.1", "10.0.0.1=", "10.0.0.1=0", "10.0.0.1=101",
                                 "10.0.0.1=-1", "10.0.0.1/=2", "10.0.0.1/33=2", "::1/129=2",
                                 "10.0.0.1:80=2", "host=2", "10.0.0.1/8/8=2", "10.0.0.1=2x"}) {
    EXPECT_FALSE(weights.Add(rule).ok()) << rule;
  }
}

}  // namespace
}  // namespace esdp_serve
