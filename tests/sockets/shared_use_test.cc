#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// What several threads do at once to one Context, its queues and its listeners, when one of them
// ends it or wants less than the others.

namespace esdp::contract {
namespace {

using std::chrono::milliseconds;

class SharedUseTest : public PairTest {
 protected:
  // The test has ended contexts and taken events without the harness.
  void TearDown() override {}
};
ESDP_ON_REAL_WORLDS(SharedUseTest);  // a simulated world has one thread

// Each call either comes before the end or is told of it.
TEST_P(SharedUseTest, AContextMayBeClosedWhileOtherThreadsUseIt) {
  for (int round = 0; round < 4; ++round) {
    client_ = Side{};  // its names of operations begin anew
    ASSERT_NO_FATAL_FAILURE(client_.Open(OptionsOf(world())));
    ASSERT_NO_FATAL_FAILURE(Connect());
    Memory& memory = Make(client_, 1000);
    std::atomic<bool> closed{false};
    std::atomic<uint64_t> calls{0};
    std::vector<std::thread> users;
    for (int i = 0; i < 2; ++i) {
      users.emplace_back([&] {
        std::array<Event, 16> some;
        while (!closed) {
          (void)client_.socket.Send(memory.All(), SendFlags::kNone, client_.Args());
          (void)client_.socket.Stats();
          (void)client_.socket.CancelAll(Direction::kReceive);
          (void)client_.context.CreateSocket(Family::kIpv4);
          (void)client_.queue.TryDequeue(absl::MakeSpan(some));
          ++calls;
        }
      });
    }
    while (calls < 10) std::this_thread::yield();

    const absl::Time bound = client_.context.Now() + absl::Milliseconds(20);
    (void)client_.context.Close(bound);
    closed = true;

    for (std::thread& user : users) user.join();
    EXPECT_TRUE(Refuses(client_.socket.Send(memory.All(), SendFlags::kNone, client_.Args()),
                        ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
    EXPECT_EQ(client_.context.Stats().operations, 0u);
    client_.socket = {};
    server_.socket = {};
    memories_.clear();
  }
}

// Rule 1 for those who wait: the events are taken or the end is told, whatever each waits for.
TEST_P(SharedUseTest, EveryWaitEndsWhenItsContextIsClosed) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(client_, 1000);
  for (uint64_t i = 0; i < 8; ++i) (void)client_.Recv(memory.At(i * 10, 10));
  std::vector<std::thread> waiters;
  std::atomic<size_t> taken{0};
  for (size_t wish = 1; wish <= 4; ++wish) {
    waiters.emplace_back([&, wish] {
      std::array<Event, 8> some;
      for (;;) {
        const auto count = client_.queue.Dequeue(absl::MakeSpan(some), {.min_events = wish});
        if (count.ok()) taken += *count;
        if (!count.ok() && KindOf(count.status()) == ErrorKind::kBadHandle) return;
      }
    });
  }
  std::this_thread::sleep_for(milliseconds(20));  // so that most of them do wait

  client_.context = {};

  for (std::thread& waiter : waiters) waiter.join();
  std::array<Event, 16> rest;
  taken += client_.queue.TryDequeue(absl::MakeSpan(rest)).value_or(0);
  EXPECT_EQ(taken, 8u);
}

TEST_P(SharedUseTest, WhoWantsOneEventIsNotPassedOverForWhoWantsMany) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, 100);
  Memory& from = Make(client_, 100);
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    for (uint64_t i = 0; i < 4; ++i) (void)server_.Recv(to.At(i * 10, 10));
    const absl::Time bound = server_.context.Now() + absl::Seconds(20);
    std::atomic<bool> one_came{false};
    std::thread many([&] {
      std::array<Event, 4> some;
      (void)server_.queue.Dequeue(absl::MakeSpan(some), {.min_events = 4, .deadline = bound});
    });
    std::thread one([&] {
      std::array<Event, 1> some;
      one_came =
          server_.queue.Dequeue(absl::MakeSpan(some), {.min_events = 1, .deadline = bound}).ok();
    });
    (void)client_.Send(from.At(0, 10));
    // The client may have to be moved by hand.
    while (!one_came && server_.context.Now() < bound) client_.Collect();
    one.join();
    EXPECT_TRUE(one_came) << "after " << round << " rounds";
    // Frees the other one: three more would not have been enough.
    (void)server_.Recv(to.At(40, 10));
    EXPECT_EQ(server_.socket.CancelAll(Direction::kReceive).value_or(-1), 4);
    many.join();
    if (!one_came) return;
  }
}

TEST_P(SharedUseTest, TheLastEventOfAnAcceptIsTheLastToBeTaken) {
  const Address address = Listen({}, 64);
  constexpr int kConnections = 40;
  EventQueue narrow = *server_.context.CreateQueue({.depth = 2});
  ASSERT_TRUE(listener_.Accept(kConnections, {narrow}).ok());
  std::vector<Socket> sockets;
  for (int i = 0; i < kConnections; ++i) {
    sockets.push_back(*client_.context.CreateSocket(Family::kIpv4));
    (void)client_.Accepted(sockets.back().Connect(address, client_.Args()));
  }
  std::atomic<int> events{0};
  std::atomic<int> last_at{0};
  const auto bound = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<std::thread> takers;
  for (int i = 0; i < 2; ++i) {
    takers.emplace_back([&] {
      Event event;
      while (events < kConnections && std::chrono::steady_clock::now() < bound) {
        if (narrow.TryDequeue(absl::MakeSpan(&event, 1)).value_or(0) == 0) continue;
        (void)server_.context.TakeAccepted(event.accepted);
        ++events;
        if (event.terminal()) ++last_at;
      }
    });
  }
  while (events < kConnections && std::chrono::steady_clock::now() < bound) client_.Collect();
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(events, kConnections);
  EXPECT_EQ(last_at, 1);
  EXPECT_EQ(narrow.Stats().reserved + narrow.Stats().waiting, 0u);
}

class InheritedTest : public PairTest {};
ESDP_ON_EVERY_WORLD(InheritedTest);

TEST_P(InheritedTest, AnAcceptedSocketReadsBackTheOptionsOfItsListener) {
  ASSERT_NO_FATAL_FAILURE(Connect({}, {.zcopy_send_min = 77,
                                       .receive_buffers = 32,
                                       .coalesce_max = 1000,
                                       .linger = absl::Seconds(7),
                                       .cancel_grace = absl::InfiniteDuration(),
                                       .deadline_policy = DeadlinePolicy::kAbortConnection}));
  const auto number = [&](OptionName name) {
    return std::get<uint64_t>(server_.socket.GetOption(name)->value);
  };
  EXPECT_EQ(number(OptionName::kZcopySendMin), 77u);
  EXPECT_EQ(number(OptionName::kZcopyRecvMin), kDefaultThreshold);
  EXPECT_EQ(number(OptionName::kReceiveBuffers), 32u);
  EXPECT_EQ(number(OptionName::kCoalesceMax), 1000u);
  EXPECT_EQ(number(OptionName::kDeadlinePolicy),
            static_cast<uint64_t>(DeadlinePolicy::kAbortConnection));
  EXPECT_EQ(std::get<absl::Duration>(server_.socket.GetOption(OptionName::kLinger)->value),
            absl::Seconds(7));
  EXPECT_EQ(std::get<absl::Duration>(server_.socket.GetOption(OptionName::kCancelGrace)->value),
            absl::InfiniteDuration());
}

TEST_P(InheritedTest, WhatChangesOnAListenerHoldsForConnectionsThatComeLater) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const auto least = [&] {
    return std::get<uint64_t>(server_.socket.GetOption(OptionName::kZcopySendMin)->value);
  };
  EXPECT_TRUE(listener_.SetOption({OptionName::kZcopySendMin, uint64_t{99}}).ok());
  EXPECT_EQ(least(), kDefaultThreshold);
  EXPECT_TRUE(Refuses(listener_.SetOption({OptionName::kCoalesceMax, uint64_t{99}}),
                      ErrorKind::kWrongState, absl::StatusCode::kFailedPrecondition));
  const Address address = listener_.local();
  ASSERT_NO_FATAL_FAILURE(ConnectTo(address));
  EXPECT_EQ(least(), 99u);
  EXPECT_TRUE(server_.socket.SetOption({OptionName::kZcopySendMin, uint64_t{98}}).ok());
  const auto buffered = static_cast<uint64_t>(DeliveryMode::kBuffered);
  EXPECT_TRUE(server_.socket.SetOption({OptionName::kSendMode, buffered}).ok());
  EXPECT_TRUE(Refuses(server_.socket.SetOption({OptionName::kLinger, absl::Seconds(1)}),
                      ErrorKind::kWrongState, absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace esdp::contract
