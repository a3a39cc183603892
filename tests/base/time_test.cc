#include "impl/base/time.h"

#include <chrono>

#include "gtest/gtest.h"

namespace esdp {
namespace {

using std::chrono::nanoseconds;

TEST(TimeTest, AddingASpanMovesTheInstantByIt) {
  EXPECT_EQ(AddSaturating(Time(nanoseconds(5)), nanoseconds(7)), Time(nanoseconds(12)));
}

TEST(TimeTest, NowPlusForEverIsForEver) {
  EXPECT_EQ(AddSaturating(Time(nanoseconds(5)), kDurationInfinite), kTimeInfinite);
  EXPECT_EQ(AddSaturating(kTimeInfinite, nanoseconds(1)), kTimeInfinite);
}

TEST(TimeTest, TheLastInstantBeforeForEverIsReachedExactly) {
  const Time time(nanoseconds(5));
  EXPECT_EQ(AddSaturating(time, kTimeInfinite - time - nanoseconds(1)),
            kTimeInfinite - nanoseconds(1));
}

TEST(TimeTest, ANegativeSpanGoesBack) {
  EXPECT_EQ(AddSaturating(Time(nanoseconds(5)), nanoseconds(-2)), Time(nanoseconds(3)));
}

}  // namespace
}  // namespace esdp
