#include "impl/fabric/sim/testbed/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "tests/fabric/sim/testbed/numbers.h"

namespace esdp::fabric::sim::testbed {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;

constexpr Work kTenMicroseconds{.nanoseconds = 10'000};

class MachineTest : public ::testing::Test {
 protected:
  void Use(const Parameters& numbers) {
    machine_ = std::make_unique<Machine>(*world_, numbers);
    begin_ = world_->Now();
  }
  // The task does this work as soon as it may, and notes when it is done.
  void Do(Task& task, const Work& work, std::function<void()> then = nullptr) {
    machine_->Acquire(task, [this, &task, work, then] {
      machine_->Spend(task, work, [this, &task, then] {
        done_.push_back(std::chrono::duration_cast<microseconds>(world_->Now() - begin_).count());
        machine_->Release(task);
        if (then) then();
      });
    });
  }

  std::shared_ptr<World> world_ = *MakeWorld();
  std::unique_ptr<Machine> machine_;
  Time begin_;
  std::vector<int64_t> done_;
};

TEST_F(MachineTest, ThreadsOnCoresOfTheirOwnTakeTheirOwnTime) {
  Use(RoundNumbers());
  Task one;
  Task other;
  Do(one, kTenMicroseconds);
  Do(other, kTenMicroseconds);
  world_->RunUntilIdle();
  EXPECT_THAT(done_, ElementsAre(10, 10));
  EXPECT_EQ(machine_->Busy(), microseconds(20));
}

TEST_F(MachineTest, ThreadsOfOneCoreGetDoneTogetherWhatItsGainSays) {
  Parameters numbers = RoundNumbers();
  numbers.machine_cores = 1;
  Use(numbers);
  Task one;
  Task other;
  Do(one, {.nanoseconds = 15'000});
  Do(other, {.nanoseconds = 30'000});
  world_->RunUntilIdle();
  // At 0.75 each until 20; then the other one has 15 left, alone.
  EXPECT_THAT(done_, ElementsAre(20, 35));
}

TEST_F(MachineTest, WhoFindsNoProcessorWaitsInTheOrderOfAsking) {
  Parameters numbers = RoundNumbers();
  numbers.machine_cores = numbers.machine_threads_per_core = 1;
  Use(numbers);
  Task tasks[3];
  for (Task& task : tasks) Do(task, kTenMicroseconds);
  world_->RunUntilIdle();
  EXPECT_THAT(done_, ElementsAre(10, 20, 30));
}

TEST_F(MachineTest, AnInterruptTakesTheProcessorFromAThread) {
  Parameters numbers = RoundNumbers();
  numbers.machine_cores = numbers.machine_threads_per_core = 1;
  Use(numbers);
  Task thread;
  Task interrupt(true);
  Do(thread, kTenMicroseconds);
  world_->Schedule(begin_ + microseconds(4), [&] { Do(interrupt, {.nanoseconds = 3000}); });
  world_->RunUntilIdle();
  EXPECT_THAT(done_, ElementsAre(7, 13));
  EXPECT_EQ(machine_->Busy(), microseconds(13));
}

TEST_F(MachineTest, CopiesShareTheMemoryAndOthersDoNotWaitForIt) {
  Use(RoundNumbers());  // 1 byte a nanosecond
  Task one;
  Task other;
  const Work copy{.nanoseconds = 10'000, .traffic = 10'000};
  Do(one, copy);
  Do(other, copy);
  world_->RunUntilIdle();
  EXPECT_THAT(done_, ElementsAre(20, 20));
  done_.clear();
  begin_ = world_->Now();
  Do(one, copy);
  Do(other, kTenMicroseconds);
  world_->RunUntilIdle();
  EXPECT_THAT(done_, ElementsAre(10, 10));
}

TEST_F(MachineTest, WhatTheDeviceMovesIsMissingToCopies) {
  Use(RoundNumbers());
  machine_->OnDma(100'000);  // half of what the memory takes in the time it is averaged over
  Task one;
  Do(one, {.nanoseconds = 10'000, .traffic = 10'000});
  world_->RunUntilIdle();
  EXPECT_THAT(done_, ElementsAre(20));
}

}  // namespace
}  // namespace esdp::fabric::sim::testbed
