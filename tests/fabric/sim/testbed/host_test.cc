#include "impl/fabric/sim/testbed/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "tests/fabric/sim/testbed/numbers.h"

namespace esdp::fabric::sim::testbed {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;

class HostTest : public ::testing::Test {
 protected:
  Duration SinceBegin() const { return world_->Now() - begin_; }

  std::shared_ptr<World> world_ = *MakeWorld();
  std::shared_ptr<Host> host_ = std::make_shared<Host>(world_, RoundNumbers());
  const Time begin_ = world_->Now();
};

TEST_F(HostTest, WhatThePostsTakeIsChargedAndTheDeviceSeesThemWhenTheProcessorHasComeSoFar) {
  host_->StartCounting();
  Duration seen{};
  const Work work = host_->Charge([&] {
    host_->OnRegister(8192);  // one map, two pages pinned and translated
    host_->OnPost(Opcode::kSend);
    seen = host_->DeviceTime() - begin_;
    host_->OnDeregister(8192);
  });
  EXPECT_EQ(seen, microseconds(1 + 4 + 1));
  EXPECT_EQ(work.nanoseconds, 1000 * (6 + 1 + 2));
  EXPECT_EQ(host_->DeviceTime(), begin_);
}

TEST_F(HostTest, NothingIsChargedBeforeItCounts) {
  const Work work = host_->Charge([&] { host_->OnRegister(1 << 20); });
  EXPECT_EQ(work.nanoseconds, 0);
}

TEST_F(HostTest, BytesThatNoCacheHasTakeLongerAndTheMemory) {
  const Work hot = host_->Copy(1000, 0, 0);
  EXPECT_EQ(hot.nanoseconds, 1000);
  EXPECT_EQ(hot.traffic, 0);
  const Work cold = host_->Copy(1000, 1, 0.5);
  EXPECT_EQ(cold.nanoseconds, 1000 + 1000 + 500);
  EXPECT_EQ(cold.traffic, 1000 + 2 * 500);
}

TEST_F(HostTest, TheTaskletPollsOneCompletionAfterTheOtherAndTellsBehindEach) {
  int waiting = 3;
  int told = 0;
  Duration last{};
  host_->SetPoll([&] {
    ASSERT_EQ(host_->PollLimit(), 1u);
    host_->OnPolled(Opcode::kReceive);
    --waiting;
    if (waiting > 0) host_->OnSomethingToPoll(0, true);
  });
  host_->ServeInKernel([&] {
    ++told;
    last = SinceBegin();
  });
  host_->StartCounting();
  host_->OnSomethingToPoll(0, true);
  world_->RunUntilIdle();
  EXPECT_EQ(told, 3);
  EXPECT_EQ(last, microseconds(1 + 3));  // one interrupt
  EXPECT_EQ(host_->machine().Busy(), microseconds(4));
}

TEST_F(HostTest, EndsOfSendsAloneInterruptWhenThereAreMany) {
  int polls = 0;
  host_->SetPoll([&] { ++polls; });
  host_->ServeInKernel([] {});
  host_->StartCounting();
  host_->OnSomethingToPoll(3, false);
  world_->RunUntilIdle();
  EXPECT_EQ(polls, 0);
  host_->OnSomethingToPoll(4, false);
  world_->RunUntilIdle();
  EXPECT_EQ(polls, 1);
}

TEST_F(HostTest, OfTheSendsInTheKernelOneInSoManyTakesTime) {
  const auto sends = [this] {
    for (int i = 0; i < 8; ++i) host_->OnPolled(Opcode::kSend);
  };
  host_->StartCounting();
  EXPECT_EQ(host_->Charge(sends, 8).nanoseconds, 8000);  // in a process
  host_->ServeInKernel([] {});
  EXPECT_EQ(host_->Charge(sends, 8).nanoseconds, 2000);
}

TEST_F(HostTest, WhatComesWhileACallHasTheLockIsLeftToItAndInterruptsOnce) {
  int polls = 0;
  host_->SetPoll([&] { ++polls; });
  host_->ServeInKernel([] {});
  host_->StartCounting();
  host_->Lock();
  host_->OnSomethingToPoll(0, true);
  world_->RunUntilIdle();
  host_->OnSomethingToPoll(0, true);
  world_->RunUntilIdle();
  EXPECT_EQ(polls, 0);
  EXPECT_EQ(host_->machine().Busy(), microseconds(1));  // the interrupt alone
  ASSERT_TRUE(host_->TakeLeft());
  EXPECT_FALSE(host_->TakeLeft());
  host_->Poll();
  EXPECT_EQ(polls, 1);
  EXPECT_FALSE(host_->TakeMoreToPoll());
  host_->OnPolledAll();
  host_->Unlock();
  host_->OnSomethingToPoll(0, true);
  world_->RunUntilIdle();
  EXPECT_EQ(polls, 2);
}

TEST_F(HostTest, QueuesOfAHostAreServedByOneInterruptOneAfterTheOther) {
  const auto other = std::make_shared<Host>(host_->hardware());
  std::vector<Duration> served;
  for (const auto& queue : {host_, other}) {
    queue->SetPoll([queue = queue.get()] { queue->OnPolled(Opcode::kReceive); });
    queue->ServeInKernel([&] { served.push_back(SinceBegin()); });
    queue->StartCounting();
    queue->OnSomethingToPoll(0, true);
  }
  world_->RunUntilIdle();
  EXPECT_THAT(served, ElementsAre(microseconds(1 + 1), microseconds(1 + 1 + 1)));
  EXPECT_EQ(host_->machine().Busy(), microseconds(3));
  for (const auto& queue : {host_, other}) queue->StopCounting();
}

TEST_F(HostTest, AQueueThatIsNoMoreWhenItsTurnComesIsPassedOver) {
  auto gone = std::make_shared<Host>(host_->hardware());
  int served = 0;
  for (const auto& queue : {gone, host_}) {
    queue->ServeInKernel([&] { ++served; });
    queue->StartCounting();
    queue->OnSomethingToPoll(0, true);
  }
  gone.reset();
  world_->RunUntilIdle();
  EXPECT_EQ(served, 1);
}

TEST_F(HostTest, AProcessIsWokenOnceForEachTimeThatItAsks) {
  int wakes = 0;
  host_->ServeInProcess([&] { ++wakes; });
  host_->StartCounting();
  host_->OnSomethingToPoll(0, true);
  world_->RunUntilIdle();
  EXPECT_EQ(wakes, 0);
  host_->Arm();
  host_->OnSomethingToPoll(0, true);
  host_->OnSomethingToPoll(0, true);
  world_->RunUntilIdle();
  EXPECT_EQ(wakes, 1);
}

TEST_F(HostTest, TheAnswerToAReadLeavesLater) {
  const auto peer = std::make_shared<Host>(world_, RoundNumbers());
  Duration sent{};
  Duration answered{};
  host_->Carry({.flow = 1, .bytes = 936}, peer.get(), [&] { sent = SinceBegin(); });
  peer->Carry({.flow = 2, .bytes = 936, .answers = true}, host_.get(),
              [&] { answered = SinceBegin(); });
  world_->RunUntilIdle();
  EXPECT_EQ(sent, microseconds(1 + 5));
  EXPECT_EQ(answered, microseconds(1 + 1 + 5));
}

}  // namespace
}  // namespace esdp::fabric::sim::testbed
