#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Objects end in any order, with operations outstanding, in a bounded time; what outlives its
// context answers.

namespace esdp::contract {
namespace {

using Steady = std::chrono::steady_clock;

// The client is torn down by the test; the server has to have lost nothing.
class TeardownTest : public PairTest {
 protected:
  void TearDown() override {
    client_.socket = {};
    server_.socket = {};
    listener_ = {};
    EXPECT_TRUE(Pump([&] { return server_.Outstanding() == 0; }));
    server_.ExpectAllEnded();
  }
  // Connected, with operations of every kind outstanding at the client and a receive at the server.
  OpId Busy() {
    Connect();
    Memory& to = Make(client_, 1 << 20);
    Memory& from = Make(client_, 1 << 20);
    (void)client_.Recv(Make(client_, 10).All());
    (void)client_.Recv(to.At(0, 1 << 20), RecvFlags::kWaitAll);
    (void)client_.Send(from.All());
    (void)client_.Send(from.At(0, 100));
    region_ = to.region;
    const OpId receive = server_.Recv(Make(server_, 8 << 20).All(), RecvFlags::kWaitAll);
    Settle();
    return receive;
  }
  void ExpectServerSees(OpId receive) {
    const Event event = End(server_, receive);
    EXPECT_EQ(event.kind, ErrorKind::kPeerReset) << event.status();
  }

  Region region_;
};
ESDP_ON_EVERY_WORLD(TeardownTest);

// A simulated world has one thread, and its first context outlives the others.
class RealTeardownTest : public TeardownTest {};
ESDP_ON_REAL_WORLDS(RealTeardownTest);

TEST_P(TeardownTest, EveryOrderOfDestructionIsSafeAndBounded) {
  std::array<int, 4> order = {0, 1, 2, 3};
  do {
    SCOPED_TRACE(::testing::PrintToString(order));
    const OpId receive = Busy();
    if (HasFatalFailure()) return;
    const auto begun = Steady::now();
    for (const int which : order) {
      if (which == 0) client_.context = {};
      if (which == 1) client_.queue = {};
      if (which == 2) client_.socket = {};
      if (which == 3) {
        for (const auto& memory : memories_) memory->region = {};
        region_ = {};
      }
    }
    EXPECT_LT(Steady::now() - begun, std::chrono::seconds(5));
    ExpectServerSees(receive);
    client_ = {};
    server_.socket = {};
    ASSERT_NO_FATAL_FAILURE(client_.Open(OptionsOf(world(), &server_.context)));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(TeardownTest, WhatOutlivesItsContextAnswersNotFound) {
  const OpId receive = Busy();
  client_.context = {};
  const auto kind = ErrorKind::kBadHandle;
  const auto code = absl::StatusCode::kNotFound;
  Socket& socket = client_.socket;
  const Slice slice = region_.slice();
  EXPECT_TRUE(Refuses(socket.Send(slice, SendFlags::kNone, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Recv(slice, RecvFlags::kNone, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Shutdown(client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Close(CloseMode::kAbort, client_.Args()), kind, code));
  EXPECT_FALSE(socket.Cancel(OpId{1}).ok());
  EXPECT_FALSE(socket.CancelAll(Direction::kBoth).ok());
  (void)socket.Stats();
  (void)socket.local();
  EXPECT_FALSE(client_.queue.Dequeue({}, {.min_events = 0}).ok() &&
               client_.queue.Stats().reserved > 0);
  client_.queue.Wake();
  (void)region_.info();
  (void)region_.Close();
  ExpectServerSees(receive);
}

TEST_P(TeardownTest, ClosingAContextGivesEveryPendingOperationItsEvent) {
  const OpId receive = Busy();
  const size_t pending = client_.Outstanding();
  ASSERT_GE(pending, 2u);
  const auto begun = Steady::now();
  const absl::Status closed = client_.context.Close(client_.context.Now() + absl::Milliseconds(50));
  EXPECT_EQ(closed.code(), absl::StatusCode::kDeadlineExceeded) << closed;
  EXPECT_LT(Steady::now() - begun, std::chrono::seconds(5));
  EXPECT_EQ(client_.queue.Stats().reserved, 0u);
  EXPECT_GE(client_.queue.Stats().waiting, pending);
  client_.Collect();
  client_.ExpectAllEnded();
  for (const Event& event : client_.events) {
    if (event.op != OpId::kNone && !event.ok()) {
      EXPECT_NE(event.kind, ErrorKind::kInternal) << event.status();
    }
  }
  std::array<Event, 1> none;
  EXPECT_FALSE(client_.queue.TryDequeue(absl::MakeSpan(none)).ok()) << "nothing is left";
  const Event event = End(server_, receive);
  EXPECT_TRUE(event.ok() ? event.eof() : event.kind == ErrorKind::kPeerReset) << event.status();
}

TEST_P(TeardownTest, AnEmptyContextClosesAtOnce) {
  const absl::Time begun = client_.context.Now();
  const absl::Status closed = client_.context.Close(begun + absl::Seconds(30));
  EXPECT_TRUE(closed.ok()) << closed;
  EXPECT_TRUE(Refuses(client_.context.CreateSocket(Family::kIpv4), ErrorKind::kBadHandle,
                      absl::StatusCode::kNotFound));
  EXPECT_TRUE(Refuses(client_.context.Close(begun + absl::Seconds(30)), ErrorKind::kBadHandle,
                      absl::StatusCode::kNotFound));
}

TEST_P(TeardownTest, AContextEndsWhileItConnects) {
  Listen();
  Socket socket = *client_.context.CreateSocket(Family::kIpv4);
  (void)client_.Accepted(socket.Connect(listener_.local(), client_.Args()));
  const auto begun = Steady::now();
  client_.context = {};
  EXPECT_LT(Steady::now() - begun, std::chrono::seconds(5));
}

TEST_P(RealTeardownTest, AWaitInAnotherThreadEndsWithItsContext) {
  const OpId receive = Busy();
  client_.Collect();
  std::thread waiter([&] {
    std::array<Event, 64> some;
    for (;;) {
      const auto taken = client_.queue.Dequeue(absl::MakeSpan(some));
      if (!taken.ok()) return;  // when nothing is left
    }
  });
  client_.context = {};
  waiter.join();
  ExpectServerSees(receive);
}

TEST_P(RealTeardownTest, TheServersContextEndsBeforeItsListenerAndItsConnections) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId mine = client_.Recv(Make(client_, 10).All());
  (void)server_.Accepted(listener_.Accept(0, server_.Args()));
  server_.context = {};
  const Event event = End(client_, mine);
  EXPECT_EQ(event.kind, ErrorKind::kPeerReset) << event.status();
  listener_ = {};
  server_ = {};
  ASSERT_NO_FATAL_FAILURE(server_.Open(OptionsOf(world())));
}

}  // namespace
}  // namespace esdp::contract
