#include "impl/provider/progress/cpu_oversubscription.h"

#include <gtest/gtest.h>

#include <chrono>

namespace esdp::provider {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart = Time{} + seconds(1000);

TEST(CpuOversubscription, WhoIsBackSoonMayLookOn) {
  CpuOversubscription crowding;
  EXPECT_FALSE(crowding.Lasts(kStart));
  for (int i = 0; i < 1000; ++i) crowding.OnBack(kStart, kStart + microseconds(900));
  EXPECT_FALSE(crowding.Lasts(kStart + microseconds(900)));
}

TEST(CpuOversubscription, WhoIsBackLateSleepsForFiftyTimesAsLong) {
  CpuOversubscription crowding;
  const Time back = kStart + milliseconds(4);
  crowding.OnBack(kStart, back);
  EXPECT_TRUE(crowding.Lasts(back));
  EXPECT_TRUE(crowding.Lasts(back + milliseconds(199)));
  EXPECT_FALSE(crowding.Lasts(back + milliseconds(200)));
}

TEST(CpuOversubscription, ALateTryAfterwardsStartsItAgainAndAPromptOneDoesNot) {
  CpuOversubscription crowding;
  crowding.OnBack(kStart, kStart + milliseconds(4));
  const Time later = kStart + seconds(1);
  crowding.OnBack(later, later + microseconds(1));
  EXPECT_FALSE(crowding.Lasts(later + microseconds(1)));
  crowding.OnBack(later, later + milliseconds(20));
  EXPECT_TRUE(crowding.Lasts(later + milliseconds(1019)));
  EXPECT_FALSE(crowding.Lasts(later + milliseconds(1020)));
}

TEST(CpuOversubscription, AProgramThatWasStoppedForAnHourLooksAgainAfterFiveSeconds) {
  CpuOversubscription crowding;
  const Time back = kStart + std::chrono::hours(1);
  crowding.OnBack(kStart, back);
  EXPECT_TRUE(crowding.Lasts(back + milliseconds(4999)));
  EXPECT_FALSE(crowding.Lasts(back + seconds(5)));
}

}  // namespace
}  // namespace esdp::provider
