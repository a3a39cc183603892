#include "impl/fabric/local/look_pacing.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"

namespace esdp::fabric::local {
namespace {

// So many polls go by until it is time to look.
uint32_t PollsUntilLook(LookPacing& pacing, bool busy = true) {
  uint32_t polls = 0;
  while (!pacing.IsTimeToLook()) {
    pacing.OnPoll(/*moved=*/busy);
    ++polls;
  }
  return polls;
}

TEST(LookPacingTest, LooksInVainComeMoreAndMoreSeldomUpToABound) {
  LookPacing pacing;
  uint32_t expected = LookPacing::kIntervalMin;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(PollsUntilLook(pacing), expected);
    pacing.OnLook(/*found=*/false);
    expected = std::min(2 * expected, LookPacing::kIntervalMax);
  }
  EXPECT_EQ(expected, LookPacing::kIntervalMax);
}

TEST(LookPacingTest, AfterALookThatHasFoundSomethingTheNextComesSoon) {
  LookPacing pacing;
  for (int i = 0; i < 20; ++i) pacing.OnLook(/*found=*/false);
  pacing.OnLook(/*found=*/true);
  EXPECT_EQ(PollsUntilLook(pacing), LookPacing::kIntervalMin);
}

TEST(LookPacingTest, WhereNoneIsBusyAnyMoreLooksComeOften) {
  LookPacing pacing;
  for (int i = 0; i < 20; ++i) pacing.OnLook(/*found=*/false);
  EXPECT_EQ(PollsUntilLook(pacing, /*busy=*/false), LookPacing::kIntervalMax);
  pacing.OnLook(/*found=*/false);
  EXPECT_EQ(PollsUntilLook(pacing, /*busy=*/false), LookPacing::kIntervalIdle);
  pacing.OnLook(/*found=*/false);
  pacing.OnPoll(/*moved=*/true);
  EXPECT_EQ(PollsUntilLook(pacing), LookPacing::kIntervalMax - 1);
}

// Others than the busy ones wait no longer because each poll takes long.
TEST(LookPacingTest, CompletionsCountAsPolls) {
  LookPacing pacing;
  pacing.OnPoll(/*moved=*/true);
  pacing.OnCompletions(LookPacing::kIntervalMin - 1);
  EXPECT_TRUE(pacing.IsTimeToLook());
  pacing.OnLook(/*found=*/false);
  EXPECT_FALSE(pacing.IsTimeToLook());
}

}  // namespace
}  // namespace esdp::fabric::local
