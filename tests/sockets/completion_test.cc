#include <algorithm>
#include <array>
#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// The contract of completion, rules 1 to 6: what a post promises, in which order events come, and
// what they say of bytes.

namespace esdp::contract {
namespace {

constexpr uint64_t kLarge = 200'000;  // above the default threshold

class CompletionTest : public PairTest {};
ESDP_ON_EVERY_WORLD(CompletionTest);

// Rule 1.
TEST_P(CompletionTest, EachAcceptedPostHasOneTerminalEventWithItsCookieAndSocket) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLarge);
  Memory& to = Make(server_, kLarge);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll, server_.Args(71));
  const OpId send = client_.Send(from.All(), client_.Args(72));
  const OpId shutdown = client_.Accepted(client_.socket.Shutdown(client_.Args(73)));
  const Event received = End(server_, receive);
  EXPECT_EQ(received.type, EventType::kRecv);
  EXPECT_EQ(received.cookie, 71u);
  EXPECT_EQ(received.socket, server_.socket.id());
  const Event sent = End(client_, send);
  EXPECT_EQ(sent.type, EventType::kSend);
  EXPECT_EQ(sent.cookie, 72u);
  EXPECT_EQ(sent.socket, client_.socket.id());
  const Event shut = End(client_, shutdown);
  EXPECT_EQ(shut.type, EventType::kShutdown);
  EXPECT_EQ(shut.cookie, 73u);
  EXPECT_TRUE(shut.ok()) << shut.status();
  Settle();
  EXPECT_TRUE(client_.events.empty());
  EXPECT_TRUE(server_.events.empty());
}

// Rule 1.
TEST_P(CompletionTest, AMultiShotAcceptGivesMoreEventsAndThenOneTerminalEvent) {
  const Address address = Listen();
  const OpId accept = server_.Accepted(listener_.Accept(3, server_.Args(9)));
  std::vector<Socket> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.push_back(*client_.context.CreateSocket(Family::kIpv4));
    const OpId connect = client_.Accepted(sockets.back().Connect(address, client_.Args()));
    EXPECT_TRUE(End(client_, connect).ok());
    const Event event = Next(server_);
    EXPECT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.op, accept);
    EXPECT_EQ(event.type, EventType::kAccept);
    EXPECT_EQ(event.cookie, 9u);
    EXPECT_EQ(event.terminal(), i == 2);
    EXPECT_EQ((event.flags & kMore) != 0, i != 2);
    EXPECT_EQ(event.accepted_peer, sockets.back().local());
    EXPECT_TRUE(server_.context.TakeAccepted(event.accepted).ok());
  }
}

// Rule 1.
TEST_P(CompletionTest, AnAcceptWithoutEndIsEndedByCancel) {
  const Address address = Listen();
  const OpId accept = server_.Accepted(listener_.Accept(0, server_.Args()));
  Socket one = *client_.context.CreateSocket(Family::kIpv4);
  (void)client_.Accepted(one.Connect(address, client_.Args()));
  const Event first = Next(server_);
  EXPECT_FALSE(first.terminal());
  EXPECT_TRUE(listener_.Cancel(accept).ok());
  const Event last = End(server_, accept);
  EXPECT_EQ(last.kind, ErrorKind::kCancelled);
  EXPECT_NE(last.flags & kCancelled, 0u);
  EXPECT_EQ(last.accepted, SocketId::kNone);
}

// Rule 2.
TEST_P(CompletionTest, APostThatFailsGivesNoEventAndTakesNoReference) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, 100);
  EventQueue small = *server_.context.CreateQueue({.depth = 1});
  const absl::StatusOr<OpId> promised =
      server_.socket.Recv(to.All(), RecvFlags::kNone, {.queue = small});
  ASSERT_TRUE(promised.ok()) << promised.status();
  const auto refused = server_.socket.Recv(to.All(), RecvFlags::kNone, {.queue = small});
  EXPECT_TRUE(Refuses(refused, ErrorKind::kQueueFull, absl::StatusCode::kResourceExhausted));
  // A thread of the library may have been at work just then, and takes it over afterwards.
  EXPECT_TRUE(Pump([&] { return to.region.info().operations == 1; }));
  EXPECT_EQ(small.Stats().reserved, 1u);
  EXPECT_TRUE(server_.socket.Cancel(*promised).ok());
  EXPECT_TRUE(Pump([&] { return small.Stats().waiting == 1; }));
  Settle();
  std::array<Event, 4> some;
  const absl::StatusOr<size_t> taken = small.TryDequeue(absl::MakeSpan(some));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(*taken, 1u);
  EXPECT_EQ(some[0].op, *promised);
  EXPECT_EQ(to.region.info().operations, 0u);
}

// Rule 3.
TEST_P(CompletionTest, ListsOfSlicesAreCopiedAtPost) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLarge);
  Memory& to = Make(server_, kLarge);
  from.Fill(NewSeed());
  std::vector<Slice> sinks = {to.At(0, 100), to.At(100, kLarge - 100)};
  const OpId receive =
      server_.Accepted(server_.socket.RecvV(sinks, RecvFlags::kWaitAll, server_.Args()));
  std::vector<Slice> sources = {from.At(0, kLarge / 2), from.At(kLarge / 2, kLarge / 2)};
  const OpId send =
      client_.Accepted(client_.socket.SendV(sources, SendFlags::kNone, client_.Args()));
  std::fill(sinks.begin(), sinks.end(), Slice());
  std::fill(sources.begin(), sources.end(), Slice());
  EXPECT_EQ(End(client_, send).type, EventType::kSendV);
  const Event received = End(server_, receive);
  EXPECT_EQ(received.type, EventType::kRecvV);
  EXPECT_EQ(received.bytes, kLarge);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

// Rule 3.
TEST_P(CompletionTest, TheBufferOfASendIsFreeAfterItsEvent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const uint64_t seed = NewSeed();
  for (const uint64_t length : {100u, 20'000u, 200'000u}) {
    Memory& from = Make(client_, length);
    Memory& to = Make(server_, length);
    from.Fill(seed);
    const std::vector<std::byte> sent = from.bytes;
    const OpId send = client_.Send(from.All());
    const OpId early = length < 30'000 ? send : OpId::kNone;  // these need no receive to end
    if (early != OpId::kNone) {
      EndWell(client_, send, length);
      from.Clear();
    }
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    if (early == OpId::kNone) {
      EndWell(client_, send, length);
      from.Clear();
    }
    EndWell(server_, receive, length);
    EXPECT_TRUE(SameBytes(sent, to.bytes)) << length << " bytes, seed " << seed;
  }
}

// Rule 4.
TEST_P(CompletionTest, EventsOfOneDirectionComeInPostingOrder) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr std::array<uint64_t, 6> kSizes = {1, 100'000, 10, 70'000, 3'000, 1};
  Memory& from = Make(client_, 100'000);
  Memory& to = Make(server_, 800'000);
  std::vector<OpId> sends;
  std::vector<OpId> receives;
  uint64_t at = 0;
  for (int round = 0; round < 4; ++round) {
    for (const uint64_t size : kSizes) {
      receives.push_back(server_.Recv(to.At(at, size), RecvFlags::kWaitAll));
      at += size;
      sends.push_back(client_.Send(from.At(0, size)));
    }
  }
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
  ASSERT_EQ(client_.events.size(), sends.size());
  ASSERT_EQ(server_.events.size(), receives.size());
  uint64_t offset = 0;
  for (size_t i = 0; i < sends.size(); ++i) {
    EXPECT_EQ(client_.events[i].op, sends[i]) << i;
    EXPECT_EQ(server_.events[i].op, receives[i]) << i;
    EXPECT_EQ(client_.events[i].stream_offset, offset) << i;
    EXPECT_EQ(server_.events[i].stream_offset, offset) << i;
    offset += kSizes[i % kSizes.size()];
  }
}

// Rule 4.
TEST_P(CompletionTest, OnlyAnOperationThatMovedNoByteOvertakes) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, 300);
  const OpId first = server_.Recv(to.At(0, 100));
  const OpId second = server_.Recv(to.At(100, 100));
  EXPECT_TRUE(server_.socket.Cancel(second).ok());
  const Event overtook = Next(server_);
  EXPECT_EQ(overtook.op, second);
  EXPECT_EQ(overtook.kind, ErrorKind::kCancelled);
  EXPECT_EQ(overtook.bytes, 0u);
  Memory& from = Make(client_, 100);
  (void)client_.Send(from.All());
  EndWell(server_, first, 100);
}

// Rule 5.
TEST_P(CompletionTest, ASendThatSucceedsHasSentItsWholeLength) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 1 << 20);
  Memory& to = Make(server_, 1 << 20);
  uint64_t total = 0;
  std::vector<std::pair<OpId, uint64_t>> sends;
  for (const uint64_t size : {1u, 63u, 2'048u, 2'049u, 16'384u, 16'385u, 65'536u, 1u << 20}) {
    sends.emplace_back(client_.Send(from.At(0, size)), size);
    total += size;
  }
  while (total > 0) {
    const OpId receive = server_.Recv(to.At(0, std::min<uint64_t>(total, to.size())));
    const Event received = End(server_, receive);
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_GT(received.bytes, 0u);
    total -= received.bytes;
  }
  for (const auto& [op, size] : sends) EndWell(client_, op, size);
}

// Rule 5.
TEST_P(CompletionTest, ASendThatFailsTellsTheBytesKnownAccepted) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 256 * 1024);
  const std::vector<OpId> waiting = FillUp(client_, from, 40, Path::kCopy);
  ASSERT_FALSE(waiting.empty()) << "nothing holds the sender back";
  server_.socket = {};
  for (const OpId op : waiting) {
    const Event event = End(client_, op);
    EXPECT_EQ(event.kind, ErrorKind::kPeerReset) << event.status();
    EXPECT_LT(event.bytes, from.size());
    if (op != waiting.front()) {
      EXPECT_EQ(event.bytes, 0u) << "it had not begun";
    }
  }
}

// Rule 6.
TEST_P(CompletionTest, AReceiveEndsWithWhatIsThereAndNoMore) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 500);
  Memory& to = Make(server_, 2'000);
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All());
  (void)client_.Send(from.All());
  const Event event = End(server_, receive);
  EXPECT_TRUE(event.ok()) << event.status();
  EXPECT_GE(event.bytes, 1u);
  EXPECT_LE(event.bytes, 500u);
  EXPECT_FALSE(event.eof());
  EXPECT_TRUE(SameBytes(absl::MakeSpan(from.bytes).subspan(0, event.bytes),
                        absl::MakeSpan(to.bytes).subspan(0, event.bytes)));
  EXPECT_TRUE(std::all_of(to.bytes.begin() + static_cast<ptrdiff_t>(event.bytes), to.bytes.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

// Rule 6.
TEST_P(CompletionTest, AReceiveShorterThanASendTakesItsPartAndTheNextTheRest) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const uint64_t length : {1'000u, 40'000u, 200'000u}) {
    Memory& from = Make(client_, length);
    Memory& to = Make(server_, length);
    from.Fill(NewSeed());
    const OpId send = client_.Send(from.All());
    const OpId first = server_.Recv(to.At(0, 7), RecvFlags::kWaitAll);
    EndWell(server_, first, 7);
    const OpId rest = server_.Recv(to.At(7, length - 7), RecvFlags::kWaitAll);
    EndWell(server_, rest, length - 7);
    EndWell(client_, send, length);
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  }
}

// Rule 6.
TEST_P(CompletionTest, WaitAllGathersSeveralSendsIntoOneReceive) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 300'000);
  Memory& to = Make(server_, 300'000);
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  for (uint64_t at = 0; at < 300'000; at += 100'000) {
    EndWell(client_, client_.Send(from.At(at, 1'000)), 1'000);
    Settle();
    EXPECT_EQ(server_.Find(receive), nullptr) << "it ended before it was full";
    (void)client_.Send(from.At(at + 1'000, 99'000));
  }
  const Event event = End(server_, receive);
  EXPECT_EQ(event.bytes, 300'000u);
  EXPECT_NE(event.flags & kWaitAll, 0u);
  EXPECT_FALSE(event.eof());
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

// Rule 6.
TEST_P(CompletionTest, AShortWaitAllAtTheEndOfTheStreamSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 999);
  Memory& to = Make(server_, 1'000);
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  (void)client_.Send(from.All());
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  const Event event = End(server_, receive);
  EXPECT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event.bytes, 999u);
  EXPECT_TRUE(event.eof());
  EXPECT_TRUE(SameBytes(from.bytes, absl::MakeSpan(to.bytes).subspan(0, 999)));
}

// Rule 6.
TEST_P(CompletionTest, EveryReceiveAfterTheEndOfTheStreamGivesTheSameEnd) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, 100);
  const std::array<OpId, 2> before = {server_.Recv(to.All()),
                                      server_.Recv(Make(server_, 100).All(), RecvFlags::kWaitAll)};
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  std::vector<Event> events = {End(server_, before[0]), End(server_, before[1])};
  for (int i = 0; i < 3; ++i) events.push_back(End(server_, server_.Recv(to.All())));
  for (const Event& event : events) {
    EXPECT_TRUE(event.ok()) << event.status();
    EXPECT_TRUE(event.eof());
    EXPECT_EQ(event.bytes, 0u);
  }
}

// Rule 6.
TEST_P(CompletionTest, BytesSentBeforeTheEndOfTheStreamAllArriveBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 300'000);
  Memory& to = Make(server_, 300'001);
  from.Fill(NewSeed());
  (void)client_.Send(from.At(0, 200'000));
  (void)client_.Send(from.At(200'000, 100'000));
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  uint64_t received = 0;
  for (;;) {
    const uint64_t length = std::min<uint64_t>(50'000, to.size() - received);
    const Event event = End(server_, server_.Recv(to.At(received, length), RecvFlags::kWaitAll));
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.stream_offset, received);
    received += event.bytes;
    if (event.bytes == 0) {
      EXPECT_TRUE(event.eof());
      break;
    }
  }
  EXPECT_EQ(received, 300'000u);
  EXPECT_TRUE(SameBytes(from.bytes, absl::MakeSpan(to.bytes).subspan(0, 300'000)));
}

}  // namespace
}  // namespace esdp::contract
