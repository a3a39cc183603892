#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Who waits with manual progress may have the only processor that the peer could run on.

namespace {
std::atomic<int> steps_aside{0};
std::atomic<int> turn_of_others_ms{0};  // how long others run when this program steps aside
}  // namespace

// The whole program's, in place of the system's.
extern "C" int sched_yield() noexcept {
  ++steps_aside;
  std::this_thread::sleep_for(std::chrono::milliseconds(turn_of_others_ms.load()));
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace esdp::contract {
namespace {

class OneProcessorTest : public ::testing::TestWithParam<WaitMode> {
 protected:
  void SetUp() override {
    auto context = Context::Open({.fabric = "qpip", .progress = Progress::kManual});
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    auto queue = context_.CreateQueue({.wait = GetParam(), .spin = absl::Seconds(1)});
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
  }
  void TearDown() override { turn_of_others_ms = 0; }
  int StepsAsideIn(absl::Duration wait) {
    std::array<Event, 1> none;
    steps_aside = 0;
    const auto taken = queue_.Dequeue(absl::MakeSpan(none), {.deadline = context_.Now() + wait});
    EXPECT_TRUE(absl::IsDeadlineExceeded(taken.status())) << taken.status();
    return steps_aside;
  }

  Context context_;
  EventQueue queue_;
};
INSTANTIATE_TEST_SUITE_P(Looking, OneProcessorTest,
                         ::testing::Values(WaitMode::kAdaptive, WaitMode::kBusyPoll),
                         [](const auto& info) {
                           return info.param == WaitMode::kBusyPoll ? "BusyPoll" : "Adaptive";
                         });

TEST_P(OneProcessorTest, AWaitThatLooksStepsAside) {
  EXPECT_GT(StepsAsideIn(absl::Milliseconds(50)), 0);
}

TEST_P(OneProcessorTest, WhereOthersTakeLongTurnsItSleepsInstead) {
  turn_of_others_ms = 10;
  (void)StepsAsideIn(absl::Milliseconds(20));  // finds it out
  EXPECT_LE(StepsAsideIn(absl::Milliseconds(200)), 2);
}

}  // namespace
}  // namespace esdp::contract
