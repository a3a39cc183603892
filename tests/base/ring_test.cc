#include "impl/base/ring.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/random.h"

namespace esdp {
namespace {

template <typename RingType>
std::vector<int> Contents(const RingType& ring) {
  return std::vector<int>(ring.begin(), ring.end());
}

TEST(RingTest, GivesBackInTheOrderOfPushing) {
  Ring<int> ring(3);
  EXPECT_TRUE(ring.PushBack(1));
  EXPECT_TRUE(ring.PushBack(2));
  EXPECT_EQ(ring.TakeFront(), 1);
  EXPECT_EQ(ring.TakeFront(), 2);
  EXPECT_TRUE(ring.empty());
}

TEST(RingTest, AFullRingRefusesAndKeepsWhatItHas) {
  Ring<int> ring(2);
  EXPECT_TRUE(ring.PushBack(1));
  EXPECT_TRUE(ring.PushBack(2));
  EXPECT_TRUE(ring.full());
  EXPECT_FALSE(ring.PushBack(3));
  EXPECT_EQ(Contents(ring), (std::vector<int>{1, 2}));
}

TEST(RingTest, ARingWithoutSlotsIsAlwaysFull) {
  Ring<int> ring(0);
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.PushBack(1));
}

TEST(RingTest, KeepsItsSlotsThroughManyTurns) {
  Ring<int> ring(3);
  const int* first_slot = nullptr;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(ring.PushBack(i));
    if (i % 3 == 0) {
      if (first_slot == nullptr) first_slot = &ring.front();
      ASSERT_EQ(&ring.front(), first_slot);
    }
    ASSERT_EQ(ring.TakeFront(), i);
  }
  EXPECT_EQ(ring.capacity(), 3u);
}

TEST(RingTest, LeavingASlotReleasesWhatItHeld) {
  Ring<std::shared_ptr<int>> ring(2);
  auto shared = std::make_shared<int>(1);
  ASSERT_TRUE(ring.PushBack(shared));
  ASSERT_TRUE(ring.PushBack(shared));
  EXPECT_EQ(shared.use_count(), 3);
  ring.PopFront();
  EXPECT_EQ(shared.use_count(), 2);
  ring.EraseAt(0);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(RingTest, HoldsWhatCanOnlyBeMoved) {
  Ring<std::unique_ptr<int>> ring(1);
  ASSERT_TRUE(ring.PushBack(std::make_unique<int>(7)));
  EXPECT_EQ(*ring.TakeFront(), 7);
}

TEST(RingTest, WhatWasMovedFromIsEmpty) {
  GrowingRing<int> ring;
  ring.PushBack(1);
  GrowingRing<int> taken = std::move(ring);
  EXPECT_EQ(taken.front(), 1);
  EXPECT_TRUE(ring.empty());  // NOLINT(bugprone-use-after-move): that is the question
  ring.PushBack(2);
  EXPECT_EQ(ring.front(), 2);
}

TEST(GrowingRingTest, KeepsTheOrderWhenItGrowsInTheMiddleOfATurn) {
  GrowingRing<int, 4> ring;
  for (int i = 0; i < 4; ++i) ring.PushBack(i);
  ring.PopFront();
  ring.PopFront();
  for (int i = 4; i < 9; ++i) ring.PushBack(i);  // wraps, then doubles
  EXPECT_EQ(Contents(ring), (std::vector<int>{2, 3, 4, 5, 6, 7, 8}));
}

TEST(GrowingRingTest, NeverShrinksSoThatASteadyLoadKeepsItsSlots) {
  GrowingRing<int> ring;
  for (int i = 0; i < 100; ++i) ring.PushBack(i);
  const size_t capacity = ring.capacity();
  ring.clear();
  EXPECT_EQ(ring.capacity(), capacity);
  const int* slot = nullptr;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) ring.PushBack(i);
    if (slot == nullptr) slot = &ring.front();
    EXPECT_EQ(&ring.front(), slot);
    ring.clear();
  }
  EXPECT_EQ(ring.capacity(), capacity);
}

TEST(GrowingRingTest, HasRoomForWhatWasReserved) {
  GrowingRing<int> ring;
  ring.Reserve(100);
  ring.PushBack(0);
  const int* slot = &ring.front();
  for (int i = 1; i < 100; ++i) ring.PushBack(i);
  EXPECT_EQ(&ring.front(), slot);
}

TEST(GrowingRingTest, AShortQueueKeepsToItsFirstSlots) {
  GrowingRing<int> ring;
  ring.PushBack(0);
  const int* slot = &ring.front();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ring.TakeFront(), i);
    ring.PushBack(i + 1);
    EXPECT_EQ(&ring.front(), slot);
  }
}

TEST(GrowingRingTest, ANewTailIsEmptyWhateverLayThereBefore) {
  GrowingRing<int> ring;
  for (int i = 0; i < 100; ++i) {
    int& tail = ring.PushBack();
    ASSERT_EQ(tail, 0);
    tail = i + 1;
    ASSERT_EQ(ring.back(), i + 1);
    if (ring.size() > 3) {
      ASSERT_EQ(ring.TakeFront(), i - 2);
    }
  }
}

TEST(GrowingRingTest, CopiesAreEqualAndGoTheirOwnWays) {
  GrowingRing<int> ring;
  for (int i = 0; i < 5; ++i) ring.PushBack(i);
  GrowingRing<int> copy = ring;
  EXPECT_EQ(copy, ring);
  copy[2] = 99;
  EXPECT_FALSE(copy == ring);
  EXPECT_EQ(ring[2], 2);
}

TEST(GrowingRingTest, EqualityLooksAtElementsNotAtWhereTheyLie) {
  GrowingRing<int, 4> turned;
  GrowingRing<int, 4> fresh;
  for (int i = 0; i < 3; ++i) turned.PushBack(-1);
  for (int i = 0; i < 3; ++i) {
    turned.PushBack(i);
    turned.PopFront();
    fresh.PushBack(i);
  }
  EXPECT_EQ(turned, fresh);
}

// The model: std::deque does the same by other means.
TEST(GrowingRingTest, DoesWhatADequeDoesWhateverTheOrderOfCalls) {
  constexpr uint64_t kSeed = 20240501;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  GrowingRing<int> ring;
  std::deque<int> model;
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || random.Chance(11, 20)) {
      ring.PushBack(step);
      model.push_back(step);
    } else if (random.Chance(2, 3)) {
      ring.PopFront();
      model.pop_front();
    } else {
      const size_t index = random.Below(model.size());
      ring.EraseAt(index);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(index));
    }
    ASSERT_EQ(ring.size(), model.size());
    if (model.empty()) continue;
    ASSERT_EQ(ring.front(), model.front());
    ASSERT_EQ(ring.back(), model.back());
    const size_t index = random.Below(model.size());
    ASSERT_EQ(ring[index], model[index]);
  }
  EXPECT_TRUE(std::equal(ring.begin(), ring.end(), model.begin(), model.end()));
}

TEST(GrowingRingTest, WhatIsPushedToTheFrontComesOutFirstAlsoAcrossTheEdgeAndWhileGrowing) {
  GrowingRing<int> ring;
  for (int i = 0; i < 3; ++i) ring.PushBack(i);
  for (int i = 1; i < 20; ++i) ring.PushFront(-i);

  for (int i = 19; i > 0; --i) EXPECT_EQ(ring.TakeFront(), -i);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ring.TakeFront(), i);
  EXPECT_TRUE(ring.empty());
}

TEST(GrowingRingTest, ShrinksToWhatIsWantedAndNeverBelowWhatIsThere) {
  GrowingRing<int> ring;
  ring.Reserve(1000);
  for (int i = 0; i < 100; ++i) ring.PushBack(i);
  for (int i = 0; i < 50; ++i) ring.PopFront();
  ring.ShrinkTo(200);
  EXPECT_EQ(ring.capacity(), 256u);
  ring.ShrinkTo(0);
  EXPECT_EQ(ring.capacity(), 64u);
  ASSERT_EQ(ring.size(), 50u);
  for (int i = 50; i < 100; ++i) EXPECT_EQ(ring.TakeFront(), i);
  ring.ShrinkTo(1000);
  EXPECT_EQ(ring.capacity(), 64u) << "it does not grow";
}

TEST(GrowingRingTest, TheTailIsTakenOutFromTheBack) {
  GrowingRing<int> ring;
  for (int i = 0; i < 6; ++i) ring.PushBack(i);
  ring.PopFront();
  ring.PushBack(6);

  EXPECT_EQ(ring.TakeBack(), 6);
  EXPECT_EQ(ring.TakeBack(), 5);
  EXPECT_EQ(ring.size(), 4u);
  EXPECT_EQ(ring.back(), 4);
}

}  // namespace
}  // namespace esdp
