#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Small sends, which are over within their call where nothing is in their way: to the program they
// are sends as all others.

namespace esdp::contract {
namespace {

using absl::StatusCode;
using Steady = std::chrono::steady_clock;

class ImmediateSendTest : public PairTest {
 protected:
  ImmediateSendTest() : PairTest(4096) {}

  // Nothing is under way afterwards, so that the next small send has nothing in its way.
  void Open(const SocketOptions& options = {}) {
    ASSERT_NO_FATAL_FAILURE(Connect(options));
    Settle();
  }
};
ESDP_ON_EVERY_WORLD(ImmediateSendTest);

// Where no thread of the library may be at work just then.
class ImmediateSendByHandTest : public ImmediateSendTest {
 protected:
  // The send has had its event, and has named nothing since.
  void ExpectOver(uint64_t bytes) {
    EXPECT_EQ(client_.queue.Stats().waiting, 1u) << bytes;
    EXPECT_EQ(client_.queue.Stats().reserved, 0u) << bytes;
  }
};
ESDP_ON_WORLDS_BY_HAND(ImmediateSendByHandTest);

// Where what is not over within its call is still to be seen after it.
class ImmediateSendInTurnsTest : public ImmediateSendByHandTest {
 protected:
  // So many bytes are copied straight into a send buffer; one more go through the bounce pool, and
  // are gathered from there.
  void ExpectLongest(uint64_t bytes) {
    const std::vector<std::byte> from(bytes + 1);
    const auto send_copy = [&](uint64_t length) {
      return client_.Accepted(client_.socket.SendCopy(absl::MakeConstSpan(from).first(length),
                                                      SendFlags::kNone, client_.Args()));
    };
    const OpId longer = send_copy(bytes + 1);
    EXPECT_GT(client_.context.Stats().bounce_bytes, 0u);
    EndWell(client_, longer, bytes + 1);
    EXPECT_EQ(client_.socket.Stats().payload_copies, 1u);
    Settle();
    const OpId longest = send_copy(bytes);
    ExpectOver(bytes);
    EndWell(client_, longest, bytes);
    EXPECT_EQ(client_.socket.Stats().payload_copies, 2u);
  }
};
ESDP_ON_SIM(ImmediateSendInTurnsTest);

// Real threads.
class ImmediateSendThreadsTest : public ImmediateSendTest {};
ESDP_ON_REAL_WORLDS(ImmediateSendThreadsTest);

// Rules 1 and 5.
TEST_P(ImmediateSendTest, ItsEventSaysWhatThatOfAnySendSays) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 100);
  from.Fill(NewSeed());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const OpId first = client_.Send(from.At(0, 70), client_.Args(41));
  const Event event = End(client_, first);
  EXPECT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event.type, EventType::kSend);
  EXPECT_EQ(event.flags, kTerminal | kCopied);
  EXPECT_EQ(event.cookie, 41u);
  EXPECT_EQ(event.op, first);
  EXPECT_EQ(event.socket, client_.socket.id());
  EXPECT_EQ(event.bytes, 70u);
  EXPECT_EQ(event.bytes_zero_copy, 0u);
  EXPECT_EQ(event.stream_offset, 0u);
  Settle();
  const std::array<Slice, 1> rest = {from.At(70, 30)};
  const OpId second =
      client_.Accepted(client_.socket.SendV(rest, SendFlags::kNone, client_.Args(42)));
  const Event next = End(client_, second);
  EXPECT_EQ(next.type, EventType::kSendV);
  EXPECT_EQ(next.cookie, 42u);
  EXPECT_EQ(next.bytes, 30u);
  EXPECT_EQ(next.stream_offset, 70u);
  EndWell(server_, receive, 100);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  EXPECT_EQ(client_.socket.Stats().sends_copied, 2u);
  EXPECT_EQ(client_.socket.Stats().bytes_sent_copied, 100u);
}

TEST_P(ImmediateSendByHandTest, ItIsOverWhenItsCallReturns) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Memory& from = Make(client_, 2048);
  for (const uint64_t bytes : {1u, 100u, 2048u}) {
    const OpId send = client_.Send(from.At(0, bytes));
    ExpectOver(bytes);
    EXPECT_EQ(from.region.info().operations, 0u) << bytes;
    EXPECT_TRUE(Refuses(client_.socket.Cancel(send), ErrorKind::kBadHandle, StatusCode::kNotFound))
        << "it has ended";
    EXPECT_EQ(client_.socket.CancelAll(Direction::kSend).value_or(-1), 0);
    EndWell(client_, send, bytes);
    Settle();
  }
  EXPECT_TRUE(from.region.Close().ok());
}

TEST_P(ImmediateSendInTurnsTest, HowLongItMayBeIsTheSocketsCoalesceMax) {
  ASSERT_NO_FATAL_FAILURE(Open({.coalesce_max = 3000}));
  ExpectLongest(3000);
}

TEST_P(ImmediateSendInTurnsTest, ItsLengthFollowsAnOptionThatIsSetBeforeTheConnection) {
  const Address address = Listen();
  client_.socket = *client_.context.CreateSocket(Family::kIpv4, SocketType::kStream, {});
  ASSERT_TRUE(client_.socket.SetOption({OptionName::kCoalesceMax, uint64_t{4000}}).ok());
  ASSERT_NO_FATAL_FAILURE(Join(address));
  Settle();
  ExpectLongest(4000);
}

TEST_P(ImmediateSendByHandTest, OfUnregisteredBytesItIsCopiedOnce) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::array<std::byte, 100> bytes{};
  const OpId send =
      client_.Accepted(client_.socket.SendCopy(bytes, SendFlags::kNone, client_.Args()));
  ExpectOver(100);
  EXPECT_EQ(client_.context.Stats().bounce_bytes, 0u);
  EndWell(client_, send, 100);
  EXPECT_EQ(client_.socket.Stats().payload_copies, 1u) << "straight into a send buffer";
  EXPECT_EQ(client_.socket.Stats().payload_copy_bytes, 100u);
}

// Rule 8.
TEST_P(ImmediateSendTest, ACancelChangesNothingOfOneThatIsOver) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Memory& from = Make(client_, 10);
  Memory& to = Make(server_, 10);
  const OpId bystander = client_.Recv(Make(client_, 10).All());
  const OpId send = client_.Send(from.All());
  EXPECT_TRUE(Pump([&] { return client_.Find(send) != nullptr; }));
  EXPECT_TRUE(Refuses(client_.socket.Cancel(send), ErrorKind::kBadHandle, StatusCode::kNotFound));
  EndWell(client_, send, 10);
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), 10);
  Settle();
  EXPECT_EQ(client_.Find(bystander), nullptr) << "the wrong one was cancelled";
  EXPECT_TRUE(client_.socket.Cancel(bystander).ok());
  EXPECT_EQ(End(client_, bystander).kind, ErrorKind::kCancelled);
}

TEST_P(ImmediateSendTest, AThousandHaveNamesOfTheirOwnAndNoneIsThatOfAReceive) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint64_t kCount = 1000;
  constexpr uint64_t kReceives = 50;
  Memory& from = Make(client_, kCount);
  Memory& to = Make(server_, kCount);
  Memory& never = Make(client_, kReceives);
  from.Fill(NewSeed());
  const uint64_t before = client_.context.Stats().operations_posted;
  const OpId whole = server_.Recv(to.All(), RecvFlags::kWaitAll);
  std::set<OpId> names;
  std::vector<OpId> receives;
  uint64_t at_once = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    if (i % (kCount / kReceives) == 0) {
      receives.push_back(client_.Recv(never.At(receives.size(), 1), RecvFlags::kWaitAll));
      EXPECT_TRUE(names.insert(receives.back()).second);
    }
    const uint64_t events = client_.queue.Stats().events;
    const OpId send = client_.Send(from.At(i, 1), client_.Args(i));
    EXPECT_TRUE(names.insert(send).second) << i;
    if (client_.queue.Stats().events > events) ++at_once;
    const Event event = End(client_, send);
    EXPECT_EQ(event.cookie, i);
    EXPECT_EQ(event.stream_offset, i);
  }
  EndWell(server_, whole, kCount);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  EXPECT_EQ(client_.context.Stats().operations_posted - before, kCount + kReceives);
  EXPECT_EQ(client_.context.Stats().operations, kReceives);
  if (!HasThread(world())) {
    EXPECT_GT(at_once, 0u) << "none was over within its call: the test tells nothing";
  }
  for (const OpId op : receives) EXPECT_EQ(client_.Find(op), nullptr);
  EXPECT_EQ(client_.socket.CancelAll(Direction::kReceive).value_or(-1),
            static_cast<int>(kReceives));
  for (const OpId op : receives) EXPECT_EQ(End(client_, op).kind, ErrorKind::kCancelled);
}

// Rule 4.
TEST_P(ImmediateSendTest, ABurstOfSmallAndLargeOnesEndsInPostingOrder) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr std::array<uint64_t, 8> kSizes = {1, 2, 2048, 2049, 5, 20'000, 100, 7};
  Memory& from = Make(client_, 500'000);
  Memory& to = Make(server_, 500'000);
  from.Fill(NewSeed());
  std::vector<OpId> sends;
  uint64_t at = 0;
  for (int round = 0; round < 20; ++round) {
    for (const uint64_t size : kSizes) {
      if (at + size > from.size()) break;
      sends.push_back(client_.Send(from.At(at, size)));
      at += size;
    }
    if (round % 5 == 0) client_.Collect();
  }
  EndWell(server_, server_.Recv(to.At(0, at), RecvFlags::kWaitAll), at);
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() == 0; }));
  ASSERT_EQ(client_.events.size(), sends.size());
  uint64_t offset = 0;
  for (size_t i = 0; i < sends.size(); ++i) {
    EXPECT_EQ(client_.events[i].op, sends[i]) << i;
    EXPECT_EQ(client_.events[i].stream_offset, offset) << i;
    offset += client_.events[i].bytes;
  }
  EXPECT_TRUE(SameBytes(absl::MakeSpan(from.bytes).subspan(0, at),
                        absl::MakeSpan(to.bytes).subspan(0, at)));
}

// Rule 2.
TEST_P(ImmediateSendTest, AQueueFullOfItsEventsRefusesTheNextAndCountsThatOnce) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Memory& from = Make(client_, 10);
  EventQueue small = *client_.context.CreateQueue({.depth = 1});
  const OpArgs args = {.queue = small};
  const auto sent = client_.socket.Send(from.All(), SendFlags::kNone, args);
  ASSERT_TRUE(sent.ok()) << sent.status();
  ASSERT_TRUE(Pump([&] { return small.Stats().waiting == 1; }));
  Settle();
  for (uint64_t refused = 1; refused <= 3; ++refused) {
    EXPECT_TRUE(Refuses(client_.socket.Send(from.All(), SendFlags::kNone, args),
                        ErrorKind::kQueueFull, StatusCode::kResourceExhausted));
    EXPECT_EQ(small.Stats().full, refused);
  }
  Settle();
  EXPECT_EQ(client_.socket.Stats().bytes_sent_copied, 10u) << "a refused send was sent";
  std::array<Event, 2> some;
  EXPECT_EQ(small.TryDequeue(absl::MakeSpan(some)).value_or(0), 1u);
  EXPECT_EQ(some[0].op, *sent);
  const auto again = client_.socket.Send(from.All(), SendFlags::kNone, args);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(Pump([&] { return small.Stats().waiting == 1; }));
  EXPECT_EQ(small.TryDequeue(absl::MakeSpan(some)).value_or(0), 1u);
  EXPECT_EQ(some[0].stream_offset, 10u);
  EXPECT_EQ(small.Stats().full, 3u);
}

// Rule 2.
TEST_P(ImmediateSendTest, OneThatIsRefusedLeavesNoTraceWhateverTheReason) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Memory& from = Make(client_, 10);
  Memory& theirs = Make(server_, 10);
  Memory& gone = Make(client_, 10);
  const Slice old = gone.All();
  ASSERT_TRUE(gone.region.Close().ok());
  const auto kind = ErrorKind::kInvalidArgument;
  const auto code = StatusCode::kInvalidArgument;
  Socket& socket = client_.socket;
  OpArgs wrong_path = client_.Args();
  wrong_path.path = static_cast<Path>(3);
  OpArgs wrong_end = client_.Args();
  wrong_end.complete_at = static_cast<CompleteAt>(2);
  EXPECT_TRUE(Refuses(socket.Send(old, SendFlags::kNone, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Send(theirs.All(), SendFlags::kNone, client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Send(from.All(), SendFlags::kNone, server_.Args()), kind, code));
  EXPECT_TRUE(
      Refuses(socket.Send(from.All(), static_cast<SendFlags>(2), client_.Args()), kind, code));
  EXPECT_TRUE(Refuses(socket.Send(from.All(), SendFlags::kNone, wrong_path), kind, code));
  EXPECT_TRUE(Refuses(socket.Send(from.All(), SendFlags::kNone, wrong_end), kind, code));
  Settle();
  EXPECT_TRUE(client_.events.empty());
  EXPECT_EQ(client_.queue.Stats().reserved, 0u);
  EXPECT_EQ(client_.queue.Stats().full, 0u);
  EXPECT_EQ(client_.context.Stats().operations, 0u);
  EXPECT_EQ(client_.socket.Stats().bytes_sent_copied, 0u);
  Carry(client_, from, server_, theirs, 10);
}

// Rules 7 and 10.
TEST_P(ImmediateSendTest, AfterTheEndOfItsDirectionItIsRefusedAndWhatWentBeforeArrives) {
  for (const bool close : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Open());
    Memory& from = Make(client_, 20);
    Memory& to = Make(server_, 20);
    from.Fill(NewSeed());
    const OpId send = client_.Send(from.At(0, 10));
    const OpId end =
        close ? client_.Close() : client_.Accepted(client_.socket.Shutdown(client_.Args()));
    const auto late = client_.socket.Send(from.At(10, 10), SendFlags::kNone, client_.Args());
    EXPECT_TRUE(Refuses(late, ErrorKind::kShutDown, StatusCode::kFailedPrecondition));
    EndWell(client_, send, 10);
    const Event received = End(server_, server_.Recv(to.All(), RecvFlags::kWaitAll));
    EXPECT_EQ(received.bytes, 10u);
    EXPECT_TRUE(received.eof());
    EXPECT_TRUE(SameBytes(absl::MakeSpan(from.bytes).subspan(0, 10),
                          absl::MakeSpan(to.bytes).subspan(0, 10)));
    (void)server_.Close();
    EXPECT_TRUE(End(client_, end).ok());
  }
}

// Rule 7.
TEST_P(ImmediateSendTest, AfterAResetItEndsWithTheRootCause) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Memory& from = Make(client_, 10);
  EndWell(client_, client_.Send(from.All()), 10);
  const OpId pending = client_.Recv(Make(client_, 10).All());
  (void)server_.Close(CloseMode::kAbort);
  EXPECT_EQ(End(client_, pending).kind, ErrorKind::kPeerReset);
  // The receive may be told before the socket is.
  const auto late = client_.socket.Send(from.All(), SendFlags::kNone, client_.Args());
  if (late.ok()) {
    EXPECT_EQ(End(client_, client_.Accepted(late)).kind, ErrorKind::kPeerReset);
  } else {
    EXPECT_EQ(KindOf(late.status()), ErrorKind::kPeerReset) << late.status();
  }
}

// Rule 4.
TEST_P(ImmediateSendThreadsTest, OfTwoThreadsTheEventsComeInTheOrderOfTheStream) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr size_t kEach = 1'000;
  constexpr std::array<size_t, 2> kSizes = {40, 64};
  constexpr size_t kBytes = kEach * (kSizes[0] + kSizes[1]);
  Memory& to = Make(server_, kBytes);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  std::vector<std::thread> threads;
  std::atomic<size_t> refused{0};
  for (const size_t which : {size_t{0}, size_t{1}}) {
    Memory& from = Make(client_, kSizes.at(which));
    std::fill(from.bytes.begin(), from.bytes.end(), static_cast<std::byte>(which));
    threads.emplace_back([&, which] {
      for (size_t i = 0; i < kEach; ++i) {
        if (!client_.socket.Send(from.All(), SendFlags::kNone, client_.Args(which)).ok()) ++refused;
      }
    });
  }
  std::vector<Event> events;
  std::array<Event, 16> some;
  const auto bound = Steady::now() + std::chrono::seconds(60);
  while (events.size() < 2 * kEach && Steady::now() < bound) {
    const auto taken = client_.queue.TryDequeue(absl::MakeSpan(some));
    ASSERT_TRUE(taken.ok()) << taken.status();
    events.insert(events.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(*taken));
    server_.Collect();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0u);
  ASSERT_EQ(events.size(), 2 * kEach);
  EndWell(server_, receive, kBytes);
  std::set<OpId> names;
  uint64_t at = 0;
  for (const Event& event : events) {
    ASSERT_EQ(event.stream_offset, at);
    EXPECT_EQ(event.bytes, kSizes.at(event.cookie));
    EXPECT_TRUE(names.insert(event.op).second) << "a name was given twice";
    const auto* block = to.bytes.data() + at;
    EXPECT_TRUE(
        std::all_of(block, block + event.bytes,
                    [&](std::byte byte) { return byte == static_cast<std::byte>(event.cookie); }))
        << "not the bytes of the thread that the event is for, at " << at;
    at += event.bytes;
  }
  EXPECT_EQ(at, kBytes);
}

}  // namespace
}  // namespace esdp::contract
