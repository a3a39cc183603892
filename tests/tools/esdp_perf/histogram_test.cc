#include "tools/esdp_perf/histogram.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace esdp_perf {
namespace {

TEST(HistogramTest, IsExactForSmallValues) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 100; ++value) histogram.Record(value);

  EXPECT_EQ(histogram.Percentile(0.5), 50u);
  EXPECT_EQ(histogram.Percentile(0.99), 99u);
  EXPECT_EQ(histogram.least(), 1u);
  EXPECT_EQ(histogram.most(), 100u);
  EXPECT_EQ(histogram.count(), 100u);
}

TEST(HistogramTest, IsAtMostOneSixtyFourthTooLowForAnySize) {
  for (uint64_t value = 1; value < (uint64_t{1} << 60); value = value * 5 / 4 + 1) {
    Histogram histogram;
    histogram.Record(0);
    histogram.Record(value);
    const uint64_t seen = histogram.Percentile(1);
    EXPECT_LE(seen, value);
    EXPECT_LE(value - seen, value / 64) << value;
  }
}

TEST(HistogramTest, HoldsTheLargestValueThereIs) {
  Histogram histogram;
  histogram.Record(~uint64_t{0});
  EXPECT_EQ(histogram.most(), ~uint64_t{0});
  EXPECT_EQ(histogram.Percentile(0.5), ~uint64_t{0});
}

TEST(HistogramTest, SaysZeroOfNoSamples) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Percentile(0.5), 0u);
  EXPECT_EQ(histogram.count(), 0u);
}

TEST(HistogramTest, OrdersPercentiles) {
  Histogram histogram;
  for (uint64_t i = 0; i < 10000; ++i) histogram.Record(i * i);
  EXPECT_LE(histogram.Percentile(0.5), histogram.Percentile(0.9));
  EXPECT_LE(histogram.Percentile(0.9), histogram.Percentile(0.999));
  EXPECT_LE(histogram.Percentile(0.999), histogram.most());
}

}  // namespace
}  // namespace esdp_perf
