#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// A thread that waits for a descriptor of its own does the work of the Context's thread meanwhile.

namespace esdp::contract {
namespace {

class WaitBesideTest : public PairTest {
 protected:
  WaitBesideTest() { EXPECT_EQ(pipe(pipe_.data()), 0); }
  ~WaitBesideTest() override {
    for (const int end : pipe_) close(end);
  }
  absl::StatusOr<bool> Wait(absl::Duration most, WaitBesideArgs args = {}) {
    args.deadline = client_.context.Now() + most;
    return client_.context.WaitBeside(pipe_[0], args);
  }
  void MakeReadable() { EXPECT_EQ(write(pipe_[1], "x", 1), 1); }

  std::array<int, 2> pipe_{-1, -1};
};
INSTANTIATE_TEST_SUITE_P(On, WaitBesideTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

TEST_P(WaitBesideTest, WhatArrivesIsMovedAndShown) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(server_, 100);
  Memory& to = Make(client_, 100);
  const int shown = client_.queue.fd();
  for (int i = 0; i < 200; ++i) {
    const OpId receive = *client_.socket.Recv(to.All(), RecvFlags::kWaitAll, client_.Args());
    const OpId send = server_.Send(from.All());
    std::array<Event, 1> one;
    size_t taken = 0;
    while (taken == 0) {
      const auto moved = client_.context.WaitBeside(
          shown, {.deadline = client_.context.Now() + absl::Seconds(20), .comes_back = i % 7 != 0});
      ASSERT_TRUE(moved.ok()) << moved.status();
      ASSERT_TRUE(*moved) << "it comes before the deadline";
      taken = client_.queue.TryDequeue(absl::MakeSpan(one)).value_or(0);
    }
    EXPECT_EQ(one[0].op, receive);
    EXPECT_EQ(one[0].bytes, 100u);
    (void)End(server_, send);
  }
}

TEST_P(WaitBesideTest, AReadableDescriptorEndsItAndADeadlineDoes) {
  const absl::Time begin = client_.context.Now();
  const auto late = Wait(absl::Milliseconds(20));
  EXPECT_TRUE(late.ok() && !*late) << late.status();
  EXPECT_GE(client_.context.Now() - begin, absl::Milliseconds(20));
  const auto look = Wait(-absl::Seconds(1));
  EXPECT_TRUE(look.ok() && !*look) << look.status();

  std::thread writer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    MakeReadable();
  });
  const auto readable = Wait(absl::Seconds(20));
  EXPECT_TRUE(readable.ok() && *readable) << readable.status();
  writer.join();
  const auto still = Wait(absl::Seconds(20));
  EXPECT_TRUE(still.ok() && *still) << still.status();
}

TEST_P(WaitBesideTest, AWakeEndsItAlsoWhereItComesBefore) {
  const auto long_ago = client_.context.Now();
  for (int i = 0; i < 50; ++i) {
    std::thread waker([&] {
      if (i % 2 != 0) std::this_thread::sleep_for(std::chrono::microseconds(20 * i));
      client_.context.WakeWaitBeside();
    });
    const auto woken = Wait(absl::Seconds(60));
    EXPECT_TRUE(woken.ok() && *woken) << woken.status();
    waker.join();
  }
  EXPECT_LT(client_.context.Now() - long_ago, absl::Seconds(50));
}

TEST_P(WaitBesideTest, ASignalEndsItThatTheMaskLetsThrough) {
  struct sigaction before {};
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, &before);
  sigset_t own{}, none{}, former{};
  sigaddset(&own, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &own, &former);
  pthread_kill(pthread_self(), SIGUSR1);
  const auto masked = Wait(absl::Milliseconds(20));
  EXPECT_TRUE(masked.ok() && !*masked) << masked.status();
  EXPECT_TRUE(Refuses(Wait(absl::Seconds(20), {.signals = &none}), ErrorKind::kSignal,
                      absl::StatusCode::kCancelled));
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(WaitBesideTest, OneThreadAtATimeDoesTheWork) {
  std::atomic<bool> ended{false};
  std::thread first([&] {
    absl::StatusOr<bool> readable;
    do {
      readable = Wait(absl::Minutes(5));
    } while (KindOf(readable.status()) == ErrorKind::kWouldBlock);
    EXPECT_TRUE(readable.ok() && *readable) << readable.status();
    ended = true;
  });
  absl::Status second;
  while (second.ok() && !ended) second = Wait(absl::ZeroDuration()).status();
  EXPECT_TRUE(Refuses(second, ErrorKind::kWouldBlock, absl::StatusCode::kResourceExhausted));
  MakeReadable();
  first.join();
}

TEST_P(WaitBesideTest, ItEndsWithItsContext) {
  std::thread closer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(client_.context.Close(client_.context.Now() + absl::Seconds(20)).ok());
  });
  EXPECT_TRUE(Refuses(Wait(absl::Minutes(5)), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
  closer.join();
  EXPECT_TRUE(Refuses(Wait(absl::Seconds(1)), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
}

TEST_P(WaitBesideTest, APinnedThreadGivesItsWorkToNobody) {
  ContextOptions options = OptionsOf(world());
  options.progress_cpu = 0;
  client_.Open(options);
  EXPECT_TRUE(Refuses(Wait(absl::Seconds(20)), ErrorKind::kWouldBlock,
                      absl::StatusCode::kResourceExhausted));
}

TEST(WaitBesideOfNoneTest, AnEmptyHandleAndManualProgressAreRefused) {
  Context none;
  none.WakeWaitBeside();
  EXPECT_TRUE(Refuses(none.WaitBeside(-1), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
  Context manual = *Context::Open({.fabric = "sim"});
  EXPECT_TRUE(Refuses(manual.WaitBeside(-1), ErrorKind::kWrongState,
                      absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace esdp::contract
