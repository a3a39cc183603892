#include "impl/base/mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace esdp {
namespace {

TEST(FastMutexTest, OneHolderAtATime) {
  FastMutex mutex;
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
}

TEST(FastMutexTest, LockWaitsForTheHolder) {
  FastMutex mutex;
  int guarded = 0;  // a data race if two had it
  mutex.lock();
  std::thread waiter([&] {
    mutex.lock();
    ++guarded;
    mutex.unlock();
  });
  ++guarded;
  mutex.unlock();
  waiter.join();
  EXPECT_EQ(guarded, 2);
}

TEST(FastMutexTest, ManyThreadsCountWithoutLosingAStep) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 20'000;
  FastMutex mutex;
  int counter = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int step = 0; step < kSteps; ++step) {
        if (i % 2 == 0) {
          mutex.lock();
        } else {
          while (!mutex.try_lock()) std::this_thread::yield();
        }
        ++counter;
        mutex.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kThreads * kSteps);
}

}  // namespace
}  // namespace esdp
