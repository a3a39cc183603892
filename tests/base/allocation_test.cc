#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "impl/base/handle_table.h"
#include "impl/base/random.h"
#include "impl/base/ring.h"
#include "impl/base/timer_queue.h"
#include "impl/base/trace.h"

// What the headers promise of a steady state: nothing is allocated in it. Every allocation of this
// program is counted.

namespace {
int64_t g_allocations = 0;
}  // namespace

void* operator new(size_t bytes) {
  ++g_allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace esdp {
namespace {

constexpr int kWarmUp = 20'000;
constexpr int kSteady = 200'000;

// Runs `step` until it has seen its largest load, then counts what it allocates in ten times as
// many steps.
template <typename Step>
int64_t AllocatedInSteadyState(Step step) {
  for (int i = 0; i < kWarmUp; ++i) step();
  const int64_t before = g_allocations;
  for (int i = 0; i < kSteady; ++i) step();
  return g_allocations - before;
}

TEST(AllocationTest, TheCountSeesAnAllocation) {
  const int64_t before = g_allocations;
  ::operator delete(::operator new(1));
  EXPECT_EQ(g_allocations, before + 1);
}

TEST(AllocationTest, AGrowingRingAllocatesNothingOnceItHasItsSize) {
  GrowingRing<uint64_t> ring;
  Random random(1);
  EXPECT_EQ(AllocatedInSteadyState([&] {
              if (ring.size() < 100) ring.PushBack(random.Next());
              if (ring.size() == 100 || random.Chance(1, 3)) ring.PopFront();
            }),
            0);
}

TEST(AllocationTest, AHandleTableAllocatesNothingOnceItHasItsSize) {
  HandleTable<uint64_t> table;
  GrowingRing<uint64_t> handles;
  Random random(2);
  EXPECT_EQ(AllocatedInSteadyState([&] {
              if (handles.size() < 100) handles.PushBack(table.Insert(random.Next()));
              if (handles.size() == 100 || random.Chance(1, 3)) table.Erase(handles.TakeFront());
            }),
            0);
}

// Keys that never come back are the hard case: the place of each must be forgotten without a trace.
TEST(AllocationTest, ATimerQueueAllocatesNothingForKeysThatNeverComeBack) {
  TimerQueue queue;
  uint64_t key = 0;
  EXPECT_EQ(AllocatedInSteadyState([&] {
              const Time now = Time(std::chrono::nanoseconds(key));
              queue.Set(++key, now + std::chrono::nanoseconds(100));
              while (queue.PopDue(now)) {
              }
            }),
            0);
}

TEST(AllocationTest, AddingToATraceAllocatesNothing) {
  Trace trace(16);
  EXPECT_EQ(AllocatedInSteadyState([&] {
              trace.Add(Time(), "sent", "Data", {{"a", 1}, {"b", 2}});
            }),
            0);
}

}  // namespace
}  // namespace esdp
