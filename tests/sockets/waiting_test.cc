#include <sys/time.h>

#include <array>
#include <chrono>
#include <csignal>
#include <vector>

#include "esdp/event_queue.h"
#include "gtest/gtest.h"
#include "tests/sockets/alarms.h"
#include "tests/sockets/harness.h"

// Dequeue: how it waits, and what it leaves alone when it gives up.

namespace esdp::contract {
namespace {

class WaitingTest : public PairTest {
 protected:
  void Open(const QueueOptions& options = {}) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    absl::StatusOr<EventQueue> created = server_.context.CreateQueue(options);
    ASSERT_TRUE(created.ok()) << created.status();
    queue_ = *std::move(created);
    to_ = &Make(server_, 100);
    from_ = &Make(client_, 100);
  }
  void PostReceives(int count) {
    for (int i = 0; i < count; ++i) {
      const Slice one = to_->At(next_++ % to_->size(), 1);
      ASSERT_TRUE(server_.socket.Recv(one, RecvFlags::kWaitAll, {.queue = queue_}).ok());
    }
  }
  void Feed(uint32_t count) {
    const uint32_t before = queue_.Stats().waiting;
    (void)client_.Send(from_->At(0, count));
    EXPECT_TRUE(Pump([&] { return queue_.Stats().waiting == before + count; }));
  }
  absl::StatusOr<size_t> Dequeue(size_t min_events, absl::Duration most) {
    return queue_.Dequeue(absl::MakeSpan(out_),
                          {.min_events = min_events, .deadline = server_.context.Now() + most});
  }

  EventQueue queue_;
  Memory* to_ = nullptr;
  Memory* from_ = nullptr;
  uint64_t next_ = 0;
  std::array<Event, 16> out_;
};
ESDP_ON_EVERY_WORLD(WaitingTest);

class RealWaitingTest : public WaitingTest {};
ESDP_ON_REAL_WORLDS(RealWaitingTest);
class VirtualWaitingTest : public WaitingTest {};
ESDP_ON_SIM(VirtualWaitingTest);

TEST_P(WaitingTest, DequeueReturnsWhenThereAreMinEvents) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(3));
  EndWell(client_, client_.Send(from_->At(0, 3)), 3);  // they are on their way
  const auto taken = Dequeue(3, absl::Seconds(20));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(*taken, 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(out_[i].bytes, 1u);
}

TEST_P(WaitingTest, DequeueTakesMoreThanMinEventsWhenTheyAreThere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(5));
  Feed(5);
  EXPECT_EQ(*Dequeue(2, absl::Seconds(20)), 5u);
}

TEST_P(WaitingTest, APassedDeadlineConsumesNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(3));
  Feed(2);
  const absl::Time begun = server_.context.Now();
  EXPECT_TRUE(Refuses(Dequeue(3, absl::Milliseconds(30)), ErrorKind::kDeadlineExceeded,
                      absl::StatusCode::kDeadlineExceeded));
  EXPECT_GE(server_.context.Now() - begun, absl::Milliseconds(30));
  EXPECT_LT(server_.context.Now() - begun, absl::Seconds(5));
  EXPECT_EQ(queue_.Stats().waiting, 2u);
  EXPECT_EQ(*Dequeue(2, absl::Milliseconds(30)), 2u);
  Feed(1);
  EXPECT_EQ(*Dequeue(1, absl::Seconds(1)), 1u);
}

TEST_P(WaitingTest, ADeadlineInThePastDoesNotWaitButTakesWhatIsThere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(2));
  EXPECT_EQ(Dequeue(1, -absl::Seconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
  Feed(1);
  EXPECT_EQ(*Dequeue(1, -absl::Seconds(1)), 1u);
  Feed(1);
  EXPECT_EQ(*queue_.Dequeue(absl::MakeSpan(out_), {.deadline = absl::InfinitePast()}), 1u);
}

TEST_P(WaitingTest, MinEventsOfZeroNeverWaits) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto none = queue_.Dequeue(absl::MakeSpan(out_), {.min_events = 0});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, 0u);
  EXPECT_EQ(*queue_.Dequeue({}, {.min_events = 0}), 0u);
  EXPECT_EQ(*queue_.TryDequeue({}), 0u);
}

TEST_P(WaitingTest, MinEventsThatCannotBeReachedAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Open({.depth = 4}));
  EXPECT_TRUE(Refuses(queue_.Dequeue({}, {.min_events = 1}), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(queue_.Dequeue(absl::MakeSpan(out_).subspan(0, 2), {.min_events = 3}),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(queue_.Dequeue(absl::MakeSpan(out_), {.min_events = 5}),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
}

#ifndef NDEBUG
TEST_P(WaitingTest, AWaitThatCouldNeverEndIsRefusedInDebugBuilds) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(queue_.Dequeue(absl::MakeSpan(out_)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_NO_FATAL_FAILURE(PostReceives(2));
  EXPECT_EQ(queue_.Dequeue(absl::MakeSpan(out_), {.min_events = 3}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  Feed(2);
  EXPECT_EQ(*queue_.Dequeue(absl::MakeSpan(out_), {.min_events = 2}), 2u);
}
#endif

TEST_P(WaitingTest, AWakeEndsTheNextWaitOnceAndConsumesNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(2));
  Feed(1);
  queue_.Wake();
  EXPECT_TRUE(
      Refuses(Dequeue(2, absl::Seconds(20)), ErrorKind::kCancelled, absl::StatusCode::kCancelled));
  EXPECT_EQ(queue_.Stats().waiting, 1u);
  EXPECT_EQ(Dequeue(2, absl::Milliseconds(10)).status().code(), absl::StatusCode::kDeadlineExceeded)
      << "one Wake ends one wait";
  EXPECT_EQ(*Dequeue(1, absl::Seconds(1)), 1u);
}

TEST_P(WaitingTest, EveryWaitModeWaits) {
  for (const WaitMode mode : {WaitMode::kAdaptive, WaitMode::kNotify, WaitMode::kBusyPoll}) {
    ASSERT_NO_FATAL_FAILURE(Open({.depth = 8, .wait = mode}));
    ASSERT_NO_FATAL_FAILURE(PostReceives(2));
    EXPECT_EQ(Dequeue(1, absl::Milliseconds(10)).status().code(),
              absl::StatusCode::kDeadlineExceeded);
    EndWell(client_, client_.Send(from_->At(0, 2)), 2);
    EXPECT_EQ(*Dequeue(2, absl::Seconds(20)), 2u);
  }
}

TEST_P(VirtualWaitingTest, VirtualTimePassesInDequeueAlone) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(1));
  const auto real = std::chrono::steady_clock::now();
  const absl::Time begun = server_.context.Now();
  EXPECT_EQ(Dequeue(1, absl::Seconds(5)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server_.context.Now(), begun + absl::Seconds(5));
  EXPECT_LT(std::chrono::steady_clock::now() - real, std::chrono::seconds(4));
  EXPECT_EQ(client_.context.Now(), server_.context.Now()) << "one world, one time";
}

// --- Signals -------------------------------------------------------------------------------------

volatile std::sig_atomic_t g_signals = 0;
void CountSignal(int) { g_signals = g_signals + 1; }

TEST_P(RealWaitingTest, ASignalEndsAWaitAndConsumesNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(PostReceives(2));
  Feed(1);
  absl::StatusOr<size_t> taken;
  {
    const Alarms alarms(5'000, CountSignal);
    taken = Dequeue(2, absl::Seconds(20));
  }
  EXPECT_TRUE(Refuses(taken, ErrorKind::kSignal, absl::StatusCode::kCancelled));
  EXPECT_EQ(queue_.Stats().waiting, 1u);
  EXPECT_EQ(*Dequeue(1, absl::Seconds(1)), 1u);
}

TEST_P(RealWaitingTest, AQueueThatRestartsWaitsOnAfterSignals) {
  ASSERT_NO_FATAL_FAILURE(Open({.restart_on_signal = true}));
  ASSERT_NO_FATAL_FAILURE(PostReceives(1));
  const Alarms alarms(2'000, CountSignal);
  g_signals = 0;
  // Signals that come while the machine is busy elsewhere count as one.
  for (int waits = 0; waits < 100 && g_signals < 2; ++waits) {
    ASSERT_EQ(Dequeue(1, absl::Milliseconds(60)).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_GE(g_signals, 2);
}

TEST_P(WaitingTest, WithManualProgressNoQueueWaitsAsRecv) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const auto created = server_.context.CreateQueue({.restart_as_handler_says = true});
  if (HasThread(world())) {
    EXPECT_TRUE(created.ok()) << created.status();
  } else {
    EXPECT_TRUE(Refuses(created, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  }
}

TEST_P(RealWaitingTest, NoEventIsLostInAStormOfSignals) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const Alarms alarms(150, CountSignal);
  uint64_t bytes = 0;
  for (int round = 0; round < 300; ++round) {
    ASSERT_NO_FATAL_FAILURE(PostReceives(2));
    (void)client_.Send(from_->At(0, 2));
    size_t taken = 0;
    while (taken < 2) {
      const auto some = Dequeue(1, absl::Seconds(20));
      if (!some.ok()) {
        ASSERT_EQ(KindOf(some.status()), ErrorKind::kSignal) << some.status();
        client_.Collect();
        continue;
      }
      for (size_t i = 0; i < *some; ++i) bytes += out_[i].bytes;
      taken += *some;
    }
  }
  EXPECT_EQ(bytes, 600u);
}

}  // namespace
}  // namespace esdp::contract
