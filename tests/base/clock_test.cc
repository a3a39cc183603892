#include "impl/base/clock.h"

#include <chrono>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace esdp {
namespace {

using std::chrono::nanoseconds;

class FixedClock final : public Clock {
 public:
  Time Now() const override { return Time(nanoseconds(1000)); }
  absl::Time WallNow() const override { return absl::FromUnixSeconds(1'700'000'000); }
};

TEST(ClockTest, ADeadlineKeepsItsDistanceFromNow) {
  const FixedClock clock;
  EXPECT_EQ(clock.FromWall(clock.WallNow() + absl::Milliseconds(3)),
            clock.Now() + std::chrono::milliseconds(3));
}

TEST(ClockTest, AFractionOfANanosecondIsRoundedUpSoThatNothingEndsEarly) {
  const FixedClock clock;
  EXPECT_EQ(clock.FromWall(clock.WallNow() + absl::Nanoseconds(2.5)), clock.Now() + nanoseconds(3));
}

TEST(ClockTest, ADeadlineThatHasPassedIsNow) {
  const FixedClock clock;
  EXPECT_EQ(clock.FromWall(clock.WallNow()), clock.Now());
  EXPECT_EQ(clock.FromWall(clock.WallNow() - absl::Hours(1)), clock.Now());
  EXPECT_EQ(clock.FromWall(absl::InfinitePast()), clock.Now());
}

TEST(ClockTest, ADeadlineBeyondWhatTimeExpressesIsForEver) {
  const FixedClock clock;
  EXPECT_EQ(clock.FromWall(absl::InfiniteFuture()), kTimeInfinite);
  EXPECT_EQ(clock.FromWall(clock.WallNow() + absl::Hours(24 * 365 * 1000)), kTimeInfinite);
}

TEST(SystemClockTest, NeverRunsBackwards) {
  const SystemClock clock;
  Time before = clock.Now();
  for (int i = 0; i < 10'000; ++i) {
    const Time now = clock.Now();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(SystemClockTest, MovesOn) {
  const SystemClock clock;
  const Time begin = clock.Now();
  int asked = 0;
  while (clock.Now() == begin && asked < 100'000'000) ++asked;
  EXPECT_GT(clock.Now(), begin);
}

TEST(SystemClockTest, TheWallClockKnowsTheCentury) {
  const SystemClock clock;
  EXPECT_GT(clock.WallNow(), absl::FromUnixSeconds(1'600'000'000));
}

}  // namespace
}  // namespace esdp
