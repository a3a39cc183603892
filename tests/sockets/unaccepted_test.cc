#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Connections that end before an Accept takes them: they go, and are counted.

namespace esdp::contract {
namespace {

constexpr int kMany = 40;

class UnacceptedTest : public PairTest {
 protected:
  // A client that is connected, and that no Accept waits for.
  Socket Come(const Address& address) {
    Socket socket = *client_.context.CreateSocket(Family::kIpv4);
    const OpId connect = client_.Accepted(socket.Connect(address, client_.Args()));
    EXPECT_TRUE(End(client_, connect).ok());
    return socket;
  }
  void ComeAndAbort(const Address& address) {
    Socket socket = Come(address);
    const OpId close = client_.Accepted(socket.Close(CloseMode::kAbort, client_.Args()));
    EXPECT_TRUE(End(client_, close).ok());
  }
  bool HaveEnded(uint64_t count) {
    return Pump([&] { return listener_.Stats().ended_before_accept >= count; });
  }
  Address NextPeer() {
    const Event event = Next(server_);
    EXPECT_EQ(event.type, EventType::kAccept);
    auto taken = server_.context.TakeAccepted(event.accepted);
    EXPECT_TRUE(taken.ok()) << taken.status();
    if (taken.ok()) server_.socket = *std::move(taken);
    return event.accepted_peer;
  }
};
ESDP_ON_EVERY_WORLD(UnacceptedTest);

TEST_P(UnacceptedTest, TheyGoAndAreCountedAndNeverHandedOut) {
  const Address address = Listen({}, kMany);
  for (int i = 0; i < kMany; ++i) ASSERT_NO_FATAL_FAILURE(ComeAndAbort(address));
  ASSERT_TRUE(HaveEnded(kMany));
  EXPECT_EQ(listener_.Stats().ended_before_accept, static_cast<uint64_t>(kMany));
  EXPECT_EQ(server_.context.Stats().ended_before_accept, static_cast<uint64_t>(kMany));
  EXPECT_EQ(server_.context.Stats().accepts_given_up, 0u);
  client_.socket = Come(address);
  (void)server_.Accepted(listener_.Accept(1, server_.Args()));
  EXPECT_EQ(NextPeer(), client_.socket.local());
  Carry(client_, Make(client_, 100'000), server_, Make(server_, 100'000), 100'000);
}

TEST_P(UnacceptedTest, OneThatWaitsForASlotInTheQueueGoesToo) {
  const Address address = Listen();
  EventQueue narrow = *server_.context.CreateQueue({.depth = 1});
  ASSERT_TRUE(listener_.Accept(0, {narrow}).ok());  // takes the one slot until the listener goes
  ASSERT_NO_FATAL_FAILURE(ComeAndAbort(address));
  ASSERT_TRUE(HaveEnded(1));
  EXPECT_EQ(narrow.Stats().events, 0u);
  ASSERT_TRUE(narrow.Resize(8).ok());
  client_.socket = Come(address);
  ASSERT_TRUE(Pump([&] { return narrow.Stats().waiting > 0; }));
  std::vector<Event> events(8);
  ASSERT_EQ(narrow.TryDequeue(absl::MakeSpan(events)).value_or(0), 1u);
  EXPECT_EQ(events[0].accepted_peer, client_.socket.local());
  // The socket, too, is not kept for somebody who could ask for it.
  const SocketId next{static_cast<uint64_t>(events[0].accepted) - 1};
  EXPECT_TRUE(Refuses(server_.context.TakeAccepted(next), ErrorKind::kBadHandle,
                      absl::StatusCode::kNotFound));
  listener_ = {};
  ASSERT_TRUE(Pump([&] { return narrow.TryDequeue(absl::MakeSpan(events)).value_or(0) > 0; }));
}

TEST_P(UnacceptedTest, WhatWasSentBeforeAGracefulCloseIsThereWhenItIsAccepted) {
  const Address address = Listen();
  client_.socket = Come(address);
  Memory& from = Make(client_, 1'000);
  Memory& to = Make(server_, 1'000);
  from.Fill(3);
  EndWell(client_, client_.Send(from.All()), from.size());
  const OpId close = client_.Close();
  Settle();
  EXPECT_EQ(listener_.Stats().ended_before_accept, 0u);
  (void)server_.Accepted(listener_.Accept(1, server_.Args()));
  EXPECT_EQ(NextPeer(), client_.socket.local());
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), to.size());
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  server_.Close();
  EXPECT_TRUE(End(client_, close).ok());
}

}  // namespace
}  // namespace esdp::contract
