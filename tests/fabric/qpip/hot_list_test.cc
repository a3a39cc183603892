#include "impl/fabric/qpip/hot_list.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace esdp::fabric::qpip {
namespace {

std::vector<QueuePairId> Visited(HotList& hot, HotList::Verdict verdict = HotList::Verdict::kIdle) {
  std::vector<QueuePairId> visited;
  hot.Visit([&](QueuePairId id) {
    visited.push_back(id);
    return verdict;
  });
  return visited;
}

TEST(HotListTest, OneThatIsThereIsNotAddedAgain) {
  HotList hot;
  EXPECT_TRUE(hot.Add(QueuePairId{1}));
  EXPECT_FALSE(hot.Add(QueuePairId{1}));
  EXPECT_EQ(Visited(hot), std::vector{QueuePairId{1}});
}

TEST(HotListTest, TheOneThatWasIdleLongestMakesRoom) {
  HotList hot;
  for (uint64_t id = 1; id <= HotList::kPairsMax; ++id) {
    hot.Add(QueuePairId{id});
    (void)Visited(hot);
  }
  EXPECT_TRUE(hot.Add(QueuePairId{99}));
  const auto left = Visited(hot);
  EXPECT_EQ(left.size(), HotList::kPairsMax);
  EXPECT_EQ(std::count(left.begin(), left.end(), QueuePairId{1}), 0);
}

TEST(HotListTest, OneThatIsTriedInVainTooOftenIsForgotten) {
  HotList hot;
  hot.Add(QueuePairId{1});
  hot.Add(QueuePairId{2});
  for (uint32_t i = 0; i < HotList::kIdleTriesMax; ++i) (void)Visited(hot);
  EXPECT_EQ(Visited(hot).size(), 2u);
  (void)Visited(hot, HotList::Verdict::kBusy);
  EXPECT_EQ(Visited(hot).size(), 1u) << "the last one may stay for longer";
}

TEST(HotListTest, WhereOthersAreBusyTheyAreLookedAtSooner) {
  HotList hot;
  EXPECT_EQ(hot.tries_before_look(), HotList::kTriesBeforeLook);
  hot.OnOthersReady();
  EXPECT_LT(hot.tries_before_look(), HotList::kTriesBeforeLook);
  for (int i = 0; i < 10; ++i) hot.OnOthersReady();
  EXPECT_EQ(hot.tries_before_look(), 1u) << "those that are hot have one try";
}

TEST(HotListTest, WhereTheseAreBusyTheOthersWaitAgain) {
  HotList hot;
  for (int i = 0; i < 10; ++i) hot.OnOthersReady();
  for (uint32_t i = 0; i < HotList::kTriesBeforeLook; ++i) hot.OnBusy();
  EXPECT_EQ(hot.tries_before_look(), HotList::kTriesBeforeLook);
}

}  // namespace
}  // namespace esdp::fabric::qpip
