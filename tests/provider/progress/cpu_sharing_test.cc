#include "impl/provider/progress/cpu_sharing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace esdp::provider {
namespace {

using std::chrono::microseconds;

constexpr Duration kPeerRan = microseconds(6);
constexpr Duration kNobodyRan = microseconds(1);

void Pay(CpuSharing& sharing, int waits) {
  for (int i = 0; i < waits; ++i) sharing.OnFound(/*somebody_ran=*/true);
}

TEST(CpuSharing, FourWaitsInARowThatOnlyThePeersTurnEndedMakeTheNextOneStepAsideFirst) {
  CpuSharing sharing;
  Pay(sharing, 3);
  EXPECT_FALSE(sharing.StepsAsideFirst());
  Pay(sharing, 1);
  EXPECT_TRUE(sharing.StepsAsideFirst());
}

TEST(CpuSharing, AWaitThatFindsSomethingByItselfStartsTheCountAnew) {
  CpuSharing sharing;
  Pay(sharing, 4);
  sharing.OnFound(/*somebody_ran=*/false);
  Pay(sharing, 3);
  EXPECT_FALSE(sharing.StepsAsideFirst());
}

TEST(CpuSharing, SteppingAsideForNobodyEndsIt) {
  CpuSharing sharing;
  Pay(sharing, 4);
  EXPECT_TRUE(sharing.OnBack(kPeerRan));
  EXPECT_TRUE(sharing.StepsAsideFirst());
  EXPECT_FALSE(sharing.OnBack(kNobodyRan));
  EXPECT_FALSE(sharing.StepsAsideFirst());
}

TEST(CpuSharing, EverySixtyFourthWaitLooksFirst) {
  CpuSharing sharing;
  Pay(sharing, 4);
  int looks = 0;
  for (int i = 0; i < 640; ++i) looks += sharing.StepsAsideFirst() ? 0 : 1;
  EXPECT_EQ(looks, 10);
}

}  // namespace
}  // namespace esdp::provider
