#include "impl/base/digest.h"

#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace esdp {
namespace {

TEST(DigestTest, TheSameNumbersGiveTheSameValue) {
  EXPECT_EQ(Digest().Add(1).Add(2).value(), Digest().Add(1).Add(2).value());
}

TEST(DigestTest, OrderAndCountMatter) {
  EXPECT_NE(Digest().Add(1).Add(2).value(), Digest().Add(2).Add(1).value());
  EXPECT_NE(Digest().Add(0).value(), Digest().value());
  EXPECT_NE(Digest().Add(0).Add(0).value(), Digest().Add(0).value());
}

TEST(DigestTest, EveryBitOfANumberChangesTheValue) {
  std::set<uint64_t> values = {Digest().Add(0).value()};
  for (int bit = 0; bit < 64; ++bit) values.insert(Digest().Add(1ull << bit).value());
  EXPECT_EQ(values.size(), 65u);
}

TEST(DigestTest, AHighBitReachesTheLowHalfOfTheValueWithTheNextNumber) {
  EXPECT_NE(static_cast<uint32_t>(Digest().Add(1ull << 63).Add(1).value()),
            static_cast<uint32_t>(Digest().Add(0).Add(1).value()));
}

}  // namespace
}  // namespace esdp
