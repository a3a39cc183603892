#include <pthread.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "esdp/event_queue.h"
#include "gtest/gtest.h"
#include "tests/sockets/alarms.h"
#include "tests/sockets/harness.h"

// A queue whose waits are to signals what recv(2) is.

namespace esdp::contract {
namespace {

std::atomic<int> g_signals{0};
void CountSignal(int) { ++g_signals; }

class RestartTest : public PairTest {
 protected:
  void Open(const QueueOptions& options) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    absl::StatusOr<EventQueue> created = server_.context.CreateQueue(options);
    ASSERT_TRUE(created.ok()) << created.status();
    queue_ = *std::move(created);
    to_ = &Make(server_, 100);
    from_ = &Make(client_, 100);
  }
  void PostReceives(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(server_.socket.Recv(to_->At(i, 1), RecvFlags::kWaitAll, {.queue = queue_}).ok());
    }
  }
  absl::StatusOr<size_t> Dequeue(size_t min_events, absl::Duration most) {
    return queue_.Dequeue(absl::MakeSpan(out_),
                          {.min_events = min_events, .deadline = server_.context.Now() + most});
  }

  EventQueue queue_;
  Memory* to_ = nullptr;
  Memory* from_ = nullptr;
  std::array<Event, 16> out_;
};
INSTANTIATE_TEST_SUITE_P(On, RestartTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

TEST_P(RestartTest, AHandlerSaysWhetherAWaitWithoutADeadlineGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Open({.restart_as_handler_says = true}));
  ASSERT_NO_FATAL_FAILURE(PostReceives(1));
  for (const int flags : {0, SA_RESTART}) {
    const Alarms alarms(2'000, CountSignal, flags);
    EXPECT_TRUE(
        Refuses(Dequeue(1, absl::Seconds(20)), ErrorKind::kSignal, absl::StatusCode::kCancelled))
        << "with a deadline any handler ends it";
  }
  {
    const Alarms alarms(2'000, CountSignal, 0);
    EXPECT_TRUE(Refuses(Dequeue(1, absl::InfiniteDuration()), ErrorKind::kSignal,
                        absl::StatusCode::kCancelled));
  }
  const Alarms alarms(2'000, CountSignal, SA_RESTART);
  g_signals = 0;
  std::thread waker([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (g_signals < 5) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    queue_.Wake();
  });
  EXPECT_TRUE(Refuses(Dequeue(1, absl::InfiniteDuration()), ErrorKind::kCancelled,
                      absl::StatusCode::kCancelled));
  waker.join();
  EXPECT_GE(g_signals, 5);
}

TEST_P(RestartTest, AWaitAsOfRecvSleepsUntilEnoughHaveCome) {
  ASSERT_NO_FATAL_FAILURE(Open({.wait = WaitMode::kNotify, .restart_as_handler_says = true}));
  ASSERT_NO_FATAL_FAILURE(PostReceives(3));
  std::thread feeder([&] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      (void)client_.Send(from_->At(0, 1));
    }
  });
  // All three may have come before this thread looked again.
  size_t taken = *Dequeue(2, absl::InfiniteDuration());
  EXPECT_GE(taken, 2u);
  if (taken < 3) taken += *Dequeue(1, absl::InfiniteDuration());
  EXPECT_EQ(taken, 3u);
  feeder.join();
}

}  // namespace
}  // namespace esdp::contract
