#include "impl/base/mutex.h"

#include <atomic>
#include <chrono>
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
  std::atomic<bool> asks{false};
  bool let_go = false;
  mutex.lock();
  std::thread waiter([&] {
    asks = true;
    mutex.lock();
    EXPECT_TRUE(let_go);
    mutex.unlock();
  });
  while (!asks) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // asleep by now
  let_go = true;
  mutex.unlock();
  waiter.join();
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
