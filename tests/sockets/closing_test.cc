#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// The contract of completion, rules 7, 10 and 12: how connections and queues end.

namespace esdp::contract {
namespace {

class ClosingTest : public PairTest {
 protected:
  // Receives until the stream ends; how many bytes that were.
  uint64_t ReadToTheEnd(Side& side, Memory& to) {
    uint64_t total = 0;
    for (;;) {
      const Event event = End(side, side.Recv(to.All()));
      EXPECT_TRUE(event.ok()) << event.status();
      if (!event.ok() || event.bytes == 0) return total;
      total += event.bytes;
    }
  }
};
TEST_P(ClosingTest, AQueueThatOnlyACloseNamesGoesAtOnceAndTheCloseGoesOnInOrder) {
  absl::Duration shortest = absl::InfiniteDuration();  // for the machine may be busy elsewhere
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    auto other = client_.context.CreateQueue({});
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE(client_.socket.Close(CloseMode::kGraceful, {.queue = *other}).ok());
    const absl::Time before = absl::Now();
    *other = EventQueue();  // the peer has not closed: the event is far away
    shortest = std::min(shortest, absl::Now() - before);

    Memory& memory = Make(server_, 8);
    const Event end = End(server_, server_.Recv(memory.All()));
    EXPECT_TRUE(end.ok()) << end.status();
    EXPECT_TRUE(end.eof());
  }
  EXPECT_LT(shortest, absl::Milliseconds(500));
}

ESDP_ON_EVERY_WORLD(ClosingTest);

// Rule 7.
TEST_P(ClosingTest, TheRootCauseEndsEveryPendingOperationAndEveryLaterPost) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& small = Make(server_, 100);
  Memory& large = Make(server_, 1 << 20);
  const std::vector<OpId> pending = {server_.Recv(small.All()),
                                     server_.Recv(large.All(), RecvFlags::kWaitAll),
                                     server_.Send(large.All()), server_.Send(small.All())};
  Settle();
  client_.socket = {};
  std::string text;
  for (const OpId op : pending) {
    const Event event = End(server_, op);
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerReset, absl::StatusCode::kAborted));
    EXPECT_NE(event.flags & kPeerReset, 0u);
    const std::string one(event.status().message().data(), event.status().message().size());
    if (text.empty()) text = one;
    EXPECT_EQ(one, text) << "the same cause for all";
  }
  const auto later = server_.socket.Send(small.All(), SendFlags::kNone, server_.Args());
  EXPECT_TRUE(Refuses(later, ErrorKind::kPeerReset, absl::StatusCode::kAborted));
  const auto another = server_.socket.Recv(small.All(), RecvFlags::kNone, server_.Args());
  EXPECT_TRUE(Refuses(another, ErrorKind::kPeerReset, absl::StatusCode::kAborted));
  EXPECT_TRUE(Refuses(server_.socket.Shutdown(server_.Args()), ErrorKind::kPeerReset,
                      absl::StatusCode::kAborted));
}

// Rule 7.
TEST_P(ClosingTest, AFailureOfOneSocketLeavesTheOthersOfItsContextAlone) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Socket first_client = std::move(client_.socket);
  Socket first_server = std::move(server_.socket);
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& lost = Make(server_, 100);
  const OpId pending =
      server_.Accepted(first_server.Recv(lost.All(), RecvFlags::kNone, server_.Args()));
  first_client = {};
  EXPECT_EQ(End(server_, pending).kind, ErrorKind::kPeerReset);
  Carry(client_, Make(client_, 100'000), server_, Make(server_, 100'000), 100'000);
}

// Rule 10.
TEST_P(ClosingTest, AGracefulCloseDrainsTheSendsAndComesLast) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 300'000);
  Memory& to = Make(server_, 300'000);
  from.Fill(NewSeed());
  std::vector<OpId> order;
  for (uint64_t at = 0; at < 300'000; at += 100'000) {
    order.push_back(client_.Send(from.At(at, 100'000)));
  }
  order.push_back(client_.Close());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(server_, receive, 300'000);
  const OpId end = server_.Recv(to.At(0, 1));
  EXPECT_TRUE(End(server_, end).eof());
  (void)server_.Close();
  EXPECT_TRUE(Pump([&] { return client_.events.size() == order.size(); }));
  for (size_t i = 0; i < order.size(); ++i) {
    const Event event = Next(client_);
    EXPECT_EQ(event.op, order[i]) << i;
    EXPECT_TRUE(event.ok()) << event.status();
  }
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

// Rule 6. However the end and the posts meet.
TEST_P(ClosingTest, ReceivesThatMeetTheEndOfBothDirectionsFindTheEndOfTheStream) {
  const int rounds = HasThread(world()) ? 50 : 3;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    Memory& memory = Make(client_, 1000);
    std::vector<OpId> receives;
    receives.push_back(client_.Recv(memory.At(0, 10)));
    (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
    (void)server_.Accepted(server_.socket.Shutdown(server_.Args()));
    for (uint64_t i = 1; i < 60; ++i) {
      receives.push_back(client_.Recv(memory.At(i * 10, 10), RecvFlags::kWaitAll));
    }
    for (const OpId op : receives) {
      const Event event = End(client_, op);
      ASSERT_TRUE(event.ok()) << event.status();
      ASSERT_TRUE(event.eof());
      ASSERT_EQ(event.bytes, 0u);
    }
  }
}

// Rule 10. What this side has sent is delivered first, whatever lies unread here.
TEST_P(ClosingTest, AGracefulCloseDeliversWhatWasSentThoughMuchIsUnreadHere) {
  for (const Path path : {Path::kCopy, Path::kZeroCopy}) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    Memory& from = Make(client_, 300'000);
    Memory& to = Make(server_, 300'000);
    Memory& unread = Make(server_, 128 * 1024);
    from.Fill(NewSeed());
    OpArgs args = server_.Args();
    args.path = path;
    std::vector<OpId> theirs;
    for (int i = 0; i < 3; ++i) theirs.push_back(server_.Send(unread.All(), args));
    Settle();
    OpArgs ours = client_.Args();
    ours.path = path;
    const OpId send = client_.Send(from.All(), ours);
    const OpId close = client_.Close();
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    EndWell(server_, receive, 300'000);
    EndWell(client_, send, 300'000);
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
    for (const OpId op : theirs) EndWell(server_, op, 128 * 1024);
    (void)End(server_, server_.Close());
    EXPECT_TRUE(End(client_, close).ok());
  }
}

// Rule 10. A server that answers and closes while requests are still coming: the answer is not lost to
// a client that reads it late.
TEST_P(ClosingTest, AGracefulCloseDeliversWhatWasSentThoughThePeerGoesOnSending) {
  for (const Path answered : {Path::kCopy, Path::kZeroCopy}) {
    for (const Path asked : {Path::kCopy, Path::kZeroCopy}) {
      SCOPED_TRACE(static_cast<int>(answered) * 10 + static_cast<int>(asked));
      ASSERT_NO_FATAL_FAILURE(Connect());
      Memory& from = Make(server_, 300'000);
      Memory& to = Make(client_, 300'000);
      Memory& request = Make(client_, asked == Path::kCopy ? 20'000 : 128 * 1024);
      from.Fill(NewSeed());
      OpArgs asks = client_.Args();
      asks.path = asked;
      OpArgs answers = server_.Args();
      answers.path = answered;
      std::vector<OpId> requests;
      for (int i = 0; i < 4; ++i) requests.push_back(client_.Send(request.All(), asks));
      EndWell(server_, server_.Recv(Make(server_, 1000).All(), RecvFlags::kWaitAll), 1000);
      const OpId send = server_.Send(from.All(), answers);
      const OpId close = server_.Close();
      for (int i = 0; i < 30; ++i) requests.push_back(client_.Send(request.All(), asks));
      Settle();
      for (int i = 0; i < 30; ++i) requests.push_back(client_.Send(request.All(), asks));
      const OpId receive = client_.Recv(to.All(), RecvFlags::kWaitAll);
      EndWell(client_, receive, 300'000);
      EndWell(server_, send, 300'000);
      EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
      for (const OpId op : requests) EndWell(client_, op, request.size());
      const OpId end = client_.Recv(to.At(0, 1));
      EXPECT_TRUE(End(client_, end).eof());
      (void)End(client_, client_.Close());
      EXPECT_TRUE(End(server_, close).ok());
    }
  }
}

// Rule 10.
TEST_P(ClosingTest, AGracefulCloseStopsPostsAndCancelsReceives) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(client_, 200'000);
  const OpId small = client_.Recv(Make(client_, 100).All());
  const OpId large = client_.Recv(memory.All(), RecvFlags::kWaitAll);
  const OpId close = client_.Close();
  EXPECT_FALSE(client_.socket.Send(memory.All(), SendFlags::kNone, client_.Args()).ok());
  EXPECT_FALSE(client_.socket.Recv(memory.All(), RecvFlags::kNone, client_.Args()).ok());
  EXPECT_FALSE(client_.socket.Close(CloseMode::kGraceful, client_.Args()).ok());
  for (const OpId op : {small, large}) {
    const Event event = End(client_, op);
    EXPECT_TRUE(
        Refuses(event.status(), ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(client_.Find(close), nullptr) << "kClose comes last";
  }
  EXPECT_EQ(ReadToTheEnd(server_, Make(server_, 10)), 0u);
  (void)server_.Close();
  const Event closed = End(client_, close);
  EXPECT_EQ(closed.type, EventType::kClose);
  EXPECT_TRUE(closed.ok()) << closed.status();
}

// Rule 10.
TEST_P(ClosingTest, PostsAfterShutdownAreRefusedAndReceivingGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(server_, 100'000);
  Memory& to = Make(client_, 100'000);
  from.Fill(NewSeed());
  const OpId shutdown = client_.Accepted(client_.socket.Shutdown(client_.Args()));
  EXPECT_TRUE(Refuses(client_.socket.Send(to.All(), SendFlags::kNone, client_.Args()),
                      ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Refuses(client_.socket.Shutdown(client_.Args()), ErrorKind::kShutDown,
                      absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(End(client_, shutdown).ok());
  Carry(server_, from, client_, to, 100'000);
}

// Rule 10.
TEST_P(ClosingTest, ACloseThatCannotDrainAbortsAtItsDeadline) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 256 * 1024);
  const std::vector<OpId> waiting = FillUp(client_, from, 20, Path::kCopy);
  ASSERT_FALSE(waiting.empty());
  OpArgs args = client_.Args();
  args.deadline = client_.context.Now() + absl::Milliseconds(50);
  const OpId close = client_.Accepted(client_.socket.Close(CloseMode::kGraceful, args));
  for (const OpId op : waiting) {
    EXPECT_FALSE(End(client_, op).ok());
    EXPECT_GE(client_.context.Now(), args.deadline) << "it gave up before its deadline";
  }
  const Event closed = End(client_, close);
  EXPECT_EQ(closed.kind, ErrorKind::kDeadlineExceeded) << closed.status();
  EXPECT_LT(client_.context.Now(), args.deadline + absl::Seconds(5));
}

// Rule 10.
TEST_P(ClosingTest, ALateCloseSaysWhetherBytesWereLeftOrOnlyThePeersCloseWasMissing) {
  for (const bool bytes_left : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    if (bytes_left) (void)FillUp(client_, Make(client_, 256 * 1024), 20, Path::kCopy);
    OpArgs args = client_.Args();
    args.deadline = client_.context.Now() + absl::Milliseconds(300);
    const Event closed =
        End(client_, client_.Accepted(client_.socket.Close(CloseMode::kGraceful, args)));
    EXPECT_EQ(closed.kind, ErrorKind::kDeadlineExceeded) << closed.status();
    const std::string text(closed.status().message());
    EXPECT_EQ(text.find("before everything had been sent") != text.npos, bytes_left) << text;
    EXPECT_EQ(text.find("the peer had not closed its side") != text.npos, !bytes_left) << text;
  }
}

// Rule 10.
TEST_P(ClosingTest, AnAbortBehindAGracefulCloseEndsBoth) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const std::vector<OpId> waiting = FillUp(client_, Make(client_, 256 * 1024), 20, Path::kCopy);
  ASSERT_FALSE(waiting.empty());
  const OpId graceful = client_.Close();
  const OpId abort = client_.Close(CloseMode::kAbort);
  EXPECT_TRUE(Refuses(client_.socket.Close(CloseMode::kAbort, client_.Args()), ErrorKind::kShutDown,
                      absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() == 0; }));
  ASSERT_GE(client_.events.size(), 2u);
  EXPECT_EQ(client_.events[client_.events.size() - 2].op, graceful) << "they come last, in order";
  EXPECT_EQ(client_.events.back().op, abort);
  EXPECT_TRUE(
      Refuses(End(client_, graceful).status(), ErrorKind::kLocalAbort, absl::StatusCode::kAborted));
  EXPECT_TRUE(End(client_, abort).ok());
  for (const OpId op : waiting) EXPECT_EQ(End(client_, op).kind, ErrorKind::kLocalAbort);
}

// Rules 8 and 10.
TEST_P(ClosingTest, ACancelThatMayAbortEndsACloseOrAShutdownThatWaits) {
  for (const bool closes : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    (void)FillUp(client_, Make(client_, 256 * 1024), 20, Path::kCopy);
    const OpId waits =
        closes ? client_.Close() : client_.Accepted(client_.socket.Shutdown(client_.Args()));
    EXPECT_TRUE(client_.socket.Cancel(waits, CancelMode::kIfNotStarted).ok());
    Settle();
    EXPECT_EQ(client_.Find(waits), nullptr) << "it ends as it would";
    EXPECT_TRUE(client_.socket.Cancel(waits, CancelMode::kAbortConnection).ok());
    EXPECT_TRUE(
        Refuses(End(client_, waits).status(), ErrorKind::kLocalAbort, absl::StatusCode::kAborted));
    EXPECT_TRUE(Pump([&] { return client_.Outstanding() == 0; }));
  }
}

// Rule 9.
TEST_P(ClosingTest, AShutdownThatIsLateEndsAndWhatWasPostedGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 256 * 1024);
  const std::vector<OpId> waiting = FillUp(client_, from, 20, Path::kCopy);
  ASSERT_FALSE(waiting.empty());
  OpArgs args = client_.Args();
  args.deadline = client_.context.Now() + absl::Milliseconds(50);
  const Event late = End(client_, client_.Accepted(client_.socket.Shutdown(args)));
  EXPECT_TRUE(
      Refuses(late.status(), ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
  EXPECT_GE(client_.context.Now(), args.deadline);
  EXPECT_TRUE(Refuses(client_.socket.Send(from.All(), SendFlags::kNone, client_.Args()),
                      ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(ReadToTheEnd(server_, Make(server_, 256 * 1024)), 20 * from.size());
  for (const OpId op : waiting) EndWell(client_, op, from.size());
}

// Rule 9.
TEST_P(ClosingTest, AShutdownThatIsLateAbortsWhereThePolicyIsTo) {
  ASSERT_NO_FATAL_FAILURE(Connect({.deadline_policy = DeadlinePolicy::kAbortConnection}));
  const std::vector<OpId> waiting = FillUp(client_, Make(client_, 256 * 1024), 20, Path::kCopy);
  ASSERT_FALSE(waiting.empty());
  OpArgs args = client_.Args();
  args.deadline = client_.context.Now() + absl::Milliseconds(50);
  const Event late = End(client_, client_.Accepted(client_.socket.Shutdown(args)));
  EXPECT_EQ(late.kind, ErrorKind::kDeadlineExceeded) << late.status();
  for (const OpId op : waiting) EXPECT_EQ(End(client_, op).kind, ErrorKind::kLocalAbort);
}

// Rule 10.
TEST_P(ClosingTest, LingerBoundsAGracefulCloseWithoutADeadline) {
  ASSERT_NO_FATAL_FAILURE(Connect({.linger = absl::Milliseconds(40)}));
  const std::vector<OpId> waiting = FillUp(client_, Make(client_, 256 * 1024), 20, Path::kCopy);
  ASSERT_FALSE(waiting.empty());
  const absl::Time begun = client_.context.Now();
  const Event closed = End(client_, client_.Close());
  EXPECT_FALSE(closed.ok());
  EXPECT_GE(client_.context.Now() - begun, absl::Milliseconds(40));
  EXPECT_LT(client_.context.Now() - begun, absl::Seconds(5));
}

// Rule 10.
TEST_P(ClosingTest, AnAbortEndsEverythingWithLocalAbortAndThePeerSeesAReset) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& memory = Make(client_, 1 << 20);
  const OpId receive = client_.Recv(memory.At(0, 100));
  const OpId send = client_.Send(memory.All());
  const OpId theirs = server_.Recv(Make(server_, 100).All(), RecvFlags::kNone);
  (void)End(server_, theirs);  // some of it may arrive
  const OpId pending = server_.Recv(Make(server_, 4 << 20).All(), RecvFlags::kWaitAll);
  const OpId close = client_.Close(CloseMode::kAbort);
  EXPECT_EQ(End(client_, receive).kind, ErrorKind::kLocalAbort);
  const Event sent = End(client_, send);
  EXPECT_TRUE(sent.ok() || sent.kind == ErrorKind::kLocalAbort) << sent.status();
  const Event closed = End(client_, close);
  EXPECT_EQ(closed.type, EventType::kClose);
  EXPECT_EQ(End(server_, pending).kind, ErrorKind::kPeerReset);
}

// Rule 10.
TEST_P(ClosingTest, AfterItsCloseASocketIsNeverHeardOfAgain) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const SocketId id = client_.socket.id();
  for (int i = 0; i < 5; ++i) (void)client_.Recv(Make(client_, 10).All());
  const OpId close = client_.Close(CloseMode::kAbort);
  bool closed = false;
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() == 0; }));
  Settle();
  for (const Event& event : client_.events) {
    EXPECT_FALSE(closed) << ToString(event.type) << " came after kClose";
    if (event.socket == id && event.op == close) closed = true;
  }
  EXPECT_TRUE(closed);
  EXPECT_TRUE(
      Refuses(client_.socket.Send(Make(client_, 10).All(), SendFlags::kNone, client_.Args()),
              ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
}

// Rule 10.
TEST_P(ClosingTest, DestroyingTheHandleIsAnAbortThatThePeerSees) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId mine = client_.Recv(Make(client_, 100).All());
  const OpId theirs = server_.Recv(Make(server_, 100).All());
  client_.socket = {};
  EXPECT_EQ(End(client_, mine).kind, ErrorKind::kLocalAbort);
  EXPECT_EQ(End(server_, theirs).kind, ErrorKind::kPeerReset);
}

// Rule 10.
TEST_P(ClosingTest, DestroyingTheHandleAfterAGracefulCloseLetsItFinish) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 200'000);
  Memory& to = Make(server_, 200'000);
  from.Fill(NewSeed());
  const OpId send = client_.Send(from.All());
  const OpId close = client_.Close();
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, send, 200'000);
  EndWell(server_, receive, 200'000);
  EXPECT_TRUE(End(server_, server_.Recv(to.At(0, 1))).eof());
  (void)server_.Close();
  EXPECT_TRUE(End(client_, close).ok());
  client_.socket = {};
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

// Rule 10.
TEST_P(ClosingTest, ASocketThatWasNeverConnectedClosesAtOnce) {
  client_.socket = *client_.context.CreateSocket(Family::kIpv4);
  const Event closed = End(client_, client_.Close());
  EXPECT_EQ(closed.type, EventType::kClose);
  EXPECT_TRUE(closed.ok()) << closed.status();
}

// Rule 10.
TEST_P(ClosingTest, ClosingAListenerEndsItsAcceptsAndFreesItsPort) {
  const Address address = Listen();
  const OpId accept = server_.Accepted(listener_.Accept(0, server_.Args()));
  const OpId close = server_.Accepted(listener_.Close(CloseMode::kGraceful, server_.Args()));
  EXPECT_FALSE(End(server_, accept).ok());
  EXPECT_TRUE(End(server_, close).ok());
  Socket again = *server_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(again.Bind(address).ok());
  const absl::Status listens = again.Listen(1);
  EXPECT_TRUE(listens.ok()) << listens;
}

// Rule 10.
TEST_P(ClosingTest, AConnectionThatIsNotTakenEndsWithItsListener) {
  const Address address = Listen();
  const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
  client_.socket = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(End(client_, client_.Accepted(client_.socket.Connect(address, client_.Args()))).ok());
  const Event accepted = End(server_, accept);
  const OpId receive = client_.Recv(Make(client_, 10).All());
  listener_ = {};
  EXPECT_EQ(End(client_, receive).kind, ErrorKind::kPeerReset);
  EXPECT_TRUE(Refuses(server_.context.TakeAccepted(accepted.accepted), ErrorKind::kBadHandle,
                      absl::StatusCode::kNotFound));
}

// Rule 12.
TEST_P(ClosingTest, AQueueThatOperationsNameIsNotClosed) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  EventQueue other = *server_.context.CreateQueue({.depth = 4});
  const auto posted =
      server_.socket.Recv(Make(server_, 10).All(), RecvFlags::kNone, {.queue = other});
  ASSERT_TRUE(posted.ok()) << posted.status();
  EXPECT_TRUE(Refuses(other.Close(), ErrorKind::kBusy, absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(server_.socket.Cancel(*posted).ok());
  EXPECT_TRUE(Pump([&] { return other.Stats().waiting == 1; }));
  const absl::Status closed = other.Close();
  EXPECT_TRUE(closed.ok()) << closed;
  std::array<Event, 1> none;
  EXPECT_FALSE(other.TryDequeue(absl::MakeSpan(none)).ok());
  EXPECT_TRUE(
      Refuses(server_.socket.Recv(Make(server_, 10).All(), RecvFlags::kNone, {.queue = other}),
              ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
}

// Rule 12.
TEST_P(ClosingTest, DestroyingAQueueAbortsTheConnectionsThatNameIt) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId theirs = client_.Recv(Make(client_, 10).All());
  const OpId mine = server_.Recv(Make(server_, 10).All());
  {
    EventQueue other = *server_.context.CreateQueue({.depth = 4});
    ASSERT_TRUE(
        server_.socket.Recv(Make(server_, 10).All(), RecvFlags::kNone, {.queue = other}).ok());
  }
  EXPECT_EQ(End(server_, mine).kind, ErrorKind::kLocalAbort);
  EXPECT_EQ(End(client_, theirs).kind, ErrorKind::kPeerReset);
}

}  // namespace
}  // namespace esdp::contract
