#include <algorithm>
#include <array>
#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// The contract of completion, rules 8 and 9: cancels and deadlines.

namespace esdp::contract {
namespace {

constexpr size_t kSend = 256 * 1024;
// What a send has begun in, however busy the machine is.
constexpr absl::Duration kLongEnoughToBegin = absl::Seconds(1);

class CancelTest : public PairTest {
 protected:
  // Sends of the client that wait behind full buffers, and the one that has begun at the front.
  void Block(const SocketOptions& options = {}) {
    ASSERT_NO_FATAL_FAILURE(Connect(options));
    from_ = &Make(client_, kSend);
    from_->Fill(1);
    before_ = 20;
    waiting_ = FillUp(client_, *from_, before_, Path::kCopy);
    ASSERT_GE(waiting_.size(), 3u) << "nothing holds the sender back";
  }
  // Receives everything that the other side still sends, until it is quiet; how many bytes.
  uint64_t Drain(Memory& to) {
    uint64_t total = 0;
    for (;;) {
      const Event event = End(server_, server_.Recv(to.All()));
      if (!event.ok() || event.bytes == 0) return total;
      total += event.bytes;
    }
  }

  Memory* from_ = nullptr;
  size_t before_ = 0;
  std::vector<OpId> waiting_;
};
ESDP_ON_EVERY_WORLD(CancelTest);

// Rule 8.
TEST_P(CancelTest, AReceiveThatNothingMatchedIsAlwaysCancelled) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 200'000);
  Memory& to = Make(server_, 400'000);
  from.Fill(2);
  for (const uint64_t length : {100u, 200'000u}) {
    const OpId receive = server_.Recv(to.At(0, length), RecvFlags::kWaitAll);
    Settle();
    EXPECT_TRUE(server_.socket.Cancel(receive).ok());
    const Event event = End(server_, receive);
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kCancelled, absl::StatusCode::kCancelled));
    EXPECT_NE(event.flags & kCancelled, 0u);
    EXPECT_EQ(event.bytes, 0u);
  }
  Carry(client_, from, server_, to, 200'000);
}

// Rule 8.
TEST_P(CancelTest, AReceiveThatHasBytesEndsWithThem) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 100);
  from.Fill(7);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, client_.Send(from.At(0, 10)), 10);
  Settle();
  EXPECT_TRUE(server_.socket.Cancel(receive).ok());
  const Event event = End(server_, receive);
  EXPECT_TRUE(Refuses(event.status(), ErrorKind::kCancelled, absl::StatusCode::kCancelled));
  EXPECT_NE(event.flags & kCancelled, 0u);
  EXPECT_EQ(event.bytes, 10u) << "bytes that were received may not be lost";
  EXPECT_TRUE(std::equal(from.bytes.begin(), from.bytes.begin() + 10, to.bytes.begin()));
  const Event next = [&] {
    const OpId op = server_.Recv(to.All());
    (void)client_.Send(from.At(0, 50));
    return End(server_, op);
  }();
  EXPECT_EQ(next.stream_offset, 10u);
  EXPECT_EQ(next.bytes, 50u);
}

// Rules 6 and 8.
TEST_P(CancelTest, AnUrgentByteThatHasNotComeIsNotTheCancelledReceives) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 200);
  const OpId receive = server_.Recv(to.At(0, 100), RecvFlags::kWaitAll);
  EndWell(client_, client_.Send(from.At(0, 10)), 10);
  Settle();
  EXPECT_TRUE(server_.socket.Cancel(receive).ok());
  const Event cancelled = End(server_, receive);
  EXPECT_EQ(cancelled.bytes, 10u);
  EXPECT_EQ(cancelled.flags & kUrgent, 0u);
  const OpId next = server_.Recv(to.At(100, 100), RecvFlags::kWaitAll);
  const OpId urgent =
      client_.Accepted(client_.socket.Send(from.At(0, 5), SendFlags::kUrgent, client_.Args()));
  const Event ended = End(server_, next);
  EXPECT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended.bytes, 5u);
  EXPECT_NE(ended.flags & kUrgent, 0u);
  EXPECT_TRUE(
      Refuses(server_.socket.Cancel(next), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
  EndWell(client_, urgent, 5);
}

// Rule 8.
TEST_P(CancelTest, ASendThatHasNotBegunIsCancelledAndTheStreamHasNoHole) {
  ASSERT_NO_FATAL_FAILURE(Block());
  const OpId victim = waiting_.back();
  EXPECT_TRUE(client_.socket.Cancel(victim).ok());
  const Event cancelled = End(client_, victim);
  EXPECT_EQ(cancelled.kind, ErrorKind::kCancelled) << cancelled.status();
  EXPECT_EQ(cancelled.bytes, 0u);
  const OpId later = client_.Send(from_->At(0, 1'000));
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  Memory& to = Make(server_, kSend);
  EXPECT_EQ(Drain(to), (before_ - 1) * kSend + 1'000);
  EndWell(client_, later, 1'000);
  waiting_.pop_back();
  for (const OpId op : waiting_) EndWell(client_, op, kSend);
}

// Rule 8.
TEST_P(CancelTest, ASendThatHasPartlyGoneIsFinished) {
  ASSERT_NO_FATAL_FAILURE(Block());
  EXPECT_TRUE(client_.socket.Cancel(waiting_.front(), CancelMode::kIfNotStarted).ok());
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  Memory& to = Make(server_, kSend);
  EXPECT_EQ(Drain(to), before_ * kSend);
  for (const OpId op : waiting_) EndWell(client_, op, kSend);
}

// Rule 8.
TEST_P(CancelTest, ASendThatHasPartlyGoneMayTakeTheConnectionWithIt) {
  ASSERT_NO_FATAL_FAILURE(Block());
  Memory& to = Make(server_, 100);
  EXPECT_TRUE(client_.socket.Cancel(waiting_.front(), CancelMode::kAbortConnection).ok());
  for (const OpId op : waiting_) EXPECT_FALSE(End(client_, op).ok());
  // What had arrived is still read, or not; the end is that of a reset.
  Event last;
  EXPECT_TRUE(Pump([&] {
    const auto posted = server_.socket.Recv(to.All(), RecvFlags::kNone, server_.Args());
    if (!posted.ok()) {
      return KindOf(posted.status()) == ErrorKind::kPeerReset;
    }
    last = End(server_, server_.Accepted(posted));
    return last.kind == ErrorKind::kPeerReset;
  }));
}

// Rule 8.
TEST_P(CancelTest, AnAdvertisedSendThatNobodyReadsIsCancelledOrFinishes) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 1 << 20);
  Memory& to = Make(server_, 1 << 20);
  from.Fill(3);
  const OpId send = client_.Send(from.All());
  Settle();
  EXPECT_EQ(client_.Find(send), nullptr) << "nobody has received";
  const absl::Status asked = client_.socket.Cancel(send);
  EXPECT_TRUE(asked.ok()) << asked;
  Settle();
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const OpId second = client_.Send(from.All());
  const Event event = End(client_, send);
  EXPECT_EQ(event.bytes, event.ok() ? 1u << 20 : 0u) << "all or nothing";
  EXPECT_TRUE(event.ok() || event.kind == ErrorKind::kCancelled) << event.status();
  EndWell(server_, receive, 1 << 20);
  if (event.ok()) (void)server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, second, 1 << 20);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

// Rule 8.
TEST_P(CancelTest, AnUnknownOrEndedOperationIsNotFound) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 100);
  const OpId send = client_.Send(from.All());
  (void)server_.Recv(to.All());
  EndWell(client_, send, 100);
  // Operations after it, so that a name without a generation would hit one of these.
  std::vector<OpId> others;
  for (int i = 0; i < 4; ++i) others.push_back(client_.Recv(Make(client_, 10).All()));
  for (const OpId op : {OpId::kNone, OpId{~uint64_t{0}}, OpId{1} /* of no generation */, send}) {
    if (std::find(others.begin(), others.end(), op) != others.end()) continue;
    EXPECT_TRUE(
        Refuses(client_.socket.Cancel(op), ErrorKind::kBadHandle, absl::StatusCode::kNotFound))
        << static_cast<uint64_t>(op);
  }
  Settle();
  for (const OpId op : others)
    EXPECT_EQ(client_.Find(op), nullptr) << "the wrong one was cancelled";
}

// Rule 8.
TEST_P(CancelTest, AnOperationOfAnotherSocketIsNotFound) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId receive = client_.Recv(Make(client_, 10).All());
  Socket other = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(Refuses(other.Cancel(receive), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
  Settle();
  EXPECT_EQ(client_.Find(receive), nullptr);
}

// Rule 8.
TEST_P(CancelTest, CancelAllTellsHowManyItAskedAndKeepsToItsDirection) {
  ASSERT_NO_FATAL_FAILURE(Block());
  Memory& to = Make(client_, 300);
  std::vector<OpId> receives;
  for (uint64_t i = 0; i < 3; ++i) receives.push_back(client_.Recv(to.At(i * 100, 100)));
  const absl::StatusOr<int> asked = client_.socket.CancelAll(Direction::kReceive);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(*asked, 3);
  for (const OpId op : receives) EXPECT_EQ(End(client_, op).kind, ErrorKind::kCancelled);
  for (const OpId op : waiting_) EXPECT_EQ(client_.Find(op), nullptr);
  const absl::StatusOr<int> both = client_.socket.CancelAll(Direction::kBoth);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(*both, static_cast<int>(waiting_.size()));
  for (size_t i = 1; i < waiting_.size(); ++i) {
    EXPECT_EQ(End(client_, waiting_[i]).kind, ErrorKind::kCancelled);
  }
}

// Rule 9.
TEST_P(CancelTest, AReceiveWhoseDeadlinePassesEndsWithDeadlineExceeded) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(server_, 400'000);
  const absl::Time deadline = server_.context.Now() + absl::Milliseconds(30);
  std::vector<OpId> receives;
  for (const uint64_t length : {100u, 200'000u}) {
    OpArgs args = server_.Args();
    args.deadline = deadline;
    receives.push_back(server_.Recv(to.At(length, length), RecvFlags::kNone, args));
  }
  for (const OpId op : receives) {
    const Event event = End(server_, op);
    EXPECT_TRUE(
        Refuses(event.status(), ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
    EXPECT_NE(event.flags & kCancelled, 0u);
    EXPECT_GE(server_.context.Now(), deadline);
    EXPECT_LT(server_.context.Now(), deadline + absl::Seconds(5));
  }
}

// Rule 9.
TEST_P(CancelTest, ADeadlineThatHasPassedAtPostEndsTheOperationAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  OpArgs args = server_.Args();
  args.deadline = server_.context.Now() - absl::Seconds(1);
  const OpId receive = server_.Recv(Make(server_, 100).All(), RecvFlags::kNone, args);
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kDeadlineExceeded);
  args.deadline = absl::InfinitePast();
  const OpId another = server_.Recv(Make(server_, 100).All(), RecvFlags::kNone, args);
  EXPECT_EQ(End(server_, another).kind, ErrorKind::kDeadlineExceeded);
}

// Rule 9.
TEST_P(CancelTest, ADeadlineThatIsKeptChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 100);
  OpArgs args = server_.Args();
  args.deadline = server_.context.Now() + absl::Seconds(100);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kNone, args);
  (void)client_.Send(from.All());
  EndWell(server_, receive, 100);
}

// Rule 9.
TEST_P(CancelTest, KFinishLetsASendThatHasBegunGoOnAfterItsDeadline) {
  ASSERT_NO_FATAL_FAILURE(Connect({.deadline_policy = DeadlinePolicy::kFinish}));
  Memory& from = Make(client_, 1 << 20);
  Memory& to = Make(server_, 1 << 20);
  from.Fill(4);
  OpArgs args = client_.Args();
  args.path = Path::kCopy;
  args.deadline = client_.context.Now() + kLongEnoughToBegin;
  const OpId begun = client_.Send(from.All(), args);
  const OpId waits = client_.Send(from.All(), args);
  EXPECT_EQ(End(client_, waits).kind, ErrorKind::kDeadlineExceeded);
  EXPECT_GE(client_.context.Now(), args.deadline);
  Settle();
  EXPECT_EQ(client_.Find(begun), nullptr);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, begun, 1 << 20);
  EndWell(server_, receive, 1 << 20);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

// Rule 9.
TEST_P(CancelTest, KAbortConnectionEndsTheConnectionWhenASendThatHasBegunIsLate) {
  ASSERT_NO_FATAL_FAILURE(Connect({.deadline_policy = DeadlinePolicy::kAbortConnection}));
  Memory& from = Make(client_, 1 << 20);
  OpArgs args = client_.Args();
  args.path = Path::kCopy;
  args.deadline = client_.context.Now() + kLongEnoughToBegin;
  const OpId receive = client_.Recv(Make(client_, 10).All());
  const OpId begun = client_.Send(from.All(), args);
  const Event event = End(client_, begun);
  EXPECT_FALSE(event.ok());
  EXPECT_LT(event.bytes, from.size());
  EXPECT_FALSE(End(client_, receive).ok());
}

}  // namespace
}  // namespace esdp::contract
