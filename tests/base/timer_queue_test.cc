#include "impl/base/timer_queue.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/random.h"

namespace esdp {
namespace {

Time At(int64_t nanoseconds) { return Time(std::chrono::nanoseconds(nanoseconds)); }

std::vector<uint64_t> PopAll(TimerQueue& queue, Time now) {
  std::vector<uint64_t> keys;
  while (const auto due = queue.PopDue(now)) keys.push_back(due->key);
  return keys;
}

TEST(TimerQueueTest, AnEmptyQueueIsNeverDue) {
  TimerQueue queue;
  EXPECT_EQ(queue.NextDeadline(), kTimeInfinite);
  EXPECT_FALSE(queue.PopDue(kTimeInfinite));
}

TEST(TimerQueueTest, DeadlinesComeInOrderAndNoneBeforeItsTime) {
  TimerQueue queue;
  queue.Set(1, At(30));
  queue.Set(2, At(10));
  queue.Set(3, At(20));
  EXPECT_EQ(queue.NextDeadline(), At(10));
  EXPECT_TRUE(PopAll(queue, At(9)).empty());
  EXPECT_EQ(PopAll(queue, At(20)), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(queue.NextDeadline(), At(30));
}

TEST(TimerQueueTest, WhatIsDueTellsItsDeadline) {
  TimerQueue queue;
  queue.Set(7, At(5));
  const auto due = queue.PopDue(At(100));
  ASSERT_TRUE(due);
  EXPECT_EQ(due->key, 7u);
  EXPECT_EQ(due->deadline, At(5));
}

TEST(TimerQueueTest, EqualDeadlinesComeInTheOrderTheyWereSet) {
  TimerQueue queue;
  for (const uint64_t key : {5u, 1u, 9u, 3u, 7u}) queue.Set(key, At(1));
  EXPECT_EQ(PopAll(queue, At(1)), (std::vector<uint64_t>{5, 1, 9, 3, 7}));
}

TEST(TimerQueueTest, SettingAgainReplacesInBothDirections) {
  TimerQueue queue;
  queue.Set(1, At(10));
  queue.Set(2, At(20));
  queue.Set(1, At(30));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.NextDeadline(), At(20));
  queue.Set(1, At(5));
  EXPECT_EQ(PopAll(queue, At(100)), (std::vector<uint64_t>{1, 2}));
}

TEST(TimerQueueTest, ACancelledDeadlineNeverComes) {
  TimerQueue queue;
  queue.Set(1, At(10));
  queue.Set(2, At(20));
  EXPECT_TRUE(queue.Cancel(1));
  EXPECT_FALSE(queue.Cancel(1));
  EXPECT_EQ(PopAll(queue, At(100)), (std::vector<uint64_t>{2}));
}

TEST(TimerQueueTest, AQueueThatShrinksKeepsItsDeadlines) {
  TimerQueue queue;
  queue.Reserve(10'000);
  for (uint64_t key = 0; key < 1000; ++key) queue.Set(key, At(static_cast<int64_t>(key)));
  for (uint64_t key = 100; key < 1000; ++key) queue.Cancel(key);
  queue.ShrinkTo(0);
  ASSERT_EQ(queue.size(), 100u);
  for (uint64_t key = 0; key < 100; ++key) EXPECT_EQ(queue.PopDue(At(1000))->key, key);
  queue.Set(5, At(1));
  EXPECT_EQ(queue.PopDue(At(1))->key, 5u);
}

TEST(TimerQueueTest, SettingForEverCancels) {
  TimerQueue queue;
  queue.Set(1, At(10));
  queue.Set(1, kTimeInfinite);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.PopDue(kTimeInfinite));
}

class Model {
 public:
  void Set(uint64_t key, Time deadline) { deadlines_[key] = {deadline, order_++}; }
  bool Cancel(uint64_t key) { return deadlines_.erase(key) == 1; }
  std::optional<uint64_t> PopDue(Time now) {
    auto first = deadlines_.end();
    for (auto it = deadlines_.begin(); it != deadlines_.end(); ++it) {
      if (first == deadlines_.end() || it->second < first->second) first = it;
    }
    if (first == deadlines_.end() || first->second.first > now) return std::nullopt;
    const uint64_t key = first->first;
    deadlines_.erase(first);
    return key;
  }
  size_t size() const { return deadlines_.size(); }

 private:
  std::map<uint64_t, std::pair<Time, uint64_t>> deadlines_;
  uint64_t order_ = 0;
};

TEST(TimerQueueTest, DoesWhatASearchThroughAllDeadlinesDoes) {
  constexpr uint64_t kSeed = 4242;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  TimerQueue queue;
  Model model;
  for (int64_t step = 0; step < 20'000; ++step) {
    const uint64_t key = random.Below(64);
    const uint64_t choice = random.Below(8);
    if (choice < 5) {
      const Time deadline = At(step + static_cast<int64_t>(random.Below(100)));
      queue.Set(key, deadline);
      model.Set(key, deadline);
    } else if (choice == 5) {
      ASSERT_EQ(queue.Cancel(key), model.Cancel(key));
    } else {
      const auto due = queue.PopDue(At(step));
      const auto wanted = model.PopDue(At(step));
      ASSERT_EQ(due.has_value(), wanted.has_value());
      if (due) {
        ASSERT_EQ(due->key, *wanted);
      }
    }
    ASSERT_EQ(queue.size(), model.size());
  }
}

}  // namespace
}  // namespace esdp
