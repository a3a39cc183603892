#include <array>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Urgent bytes: told ahead of the stream, and found in their place in it.

namespace esdp::contract {
namespace {

class UrgentTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    Connect();
  }
  OpId SendUrgent(const Slice& slice, OpArgs args) {
    return client_.Accepted(client_.socket.Send(slice, SendFlags::kUrgent, args));
  }
  OpId Await() { return server_.Accepted(server_.socket.AwaitUrgent(server_.Args())); }
  static constexpr size_t kLong = 300'000;
};

TEST_P(UrgentTest, ThePeerHearsOfItWhileTheBytesBeforeItWait) {
  Memory& from = Make(client_, kLong);
  Memory& to = Make(server_, kLong);
  from.Fill(1);
  const OpId wait = Await();
  const OpId send = SendUrgent(from.All(), client_.Args());  // nobody receives yet

  EXPECT_EQ(End(server_, wait).flags & kUrgent, kUrgent);
  EXPECT_EQ(client_.Find(send), nullptr) << "it is told before the bytes can go";
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const Event event = End(server_, receive);
  EXPECT_EQ(event.bytes, kLong);
  EXPECT_EQ(event.flags & kUrgent, kUrgent);
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  EndWell(client_, send, kLong);
  EXPECT_EQ(client_.socket.Stats().urgent_sent, 1u);
  EXPECT_EQ(server_.socket.Stats().urgent_received, 1u);
}

TEST_P(UrgentTest, AReceiveEndsWithTheUrgentByteOnEveryPath) {
  for (const Path path : {Path::kCopy, Path::kZeroCopy}) {
    for (const uint64_t length : {uint64_t{1}, uint64_t{2}, uint64_t{3000}, uint64_t{100'000}}) {
      Memory& from = Make(client_, kLong);
      Memory& to = Make(server_, kLong);
      from.Fill(length);
      OpArgs args = client_.Args();
      args.path = path;
      const OpId first = SendUrgent(from.At(0, length), args);
      const OpId second = client_.Send(from.At(length, 10), args);
      const Event urgent = End(server_, server_.Recv(to.All(), RecvFlags::kWaitAll));
      const Event rest = End(server_, server_.Recv(to.At(length, 10), RecvFlags::kWaitAll));

      EXPECT_EQ(urgent.bytes, length);
      EXPECT_NE(urgent.flags & kUrgent, 0u);
      EXPECT_EQ(rest.flags & kUrgent, 0u);
      EXPECT_TRUE(SameBytes(absl::MakeSpan(from.bytes).first(length + 10),
                            absl::MakeSpan(to.bytes).first(length + 10)));
      EndWell(client_, first, length);
      EndWell(client_, second, 10);
    }
  }
}

TEST_P(UrgentTest, EachUrgentByteIsToldOnceAndTheEndOfTheStreamBehindThem) {
  const std::array<std::byte, 3> bytes{};
  Memory& to = Make(server_, 10);
  for (int i = 0; i < 2; ++i) {
    const OpId send =
        client_.Accepted(client_.socket.SendCopy(bytes, SendFlags::kUrgent, client_.Args()));
    EndWell(client_, send, 3);
    EXPECT_EQ(End(server_, server_.Recv(to.All())).bytes, 3u);
  }
  EXPECT_NE(End(server_, Await()).flags & kUrgent, 0u);
  EXPECT_NE(End(server_, Await()).flags & kUrgent, 0u);
  const OpId third = Await();
  Settle();
  EXPECT_EQ(server_.Find(third), nullptr);
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  const Event end = End(server_, third);
  EXPECT_EQ(end.flags & (kUrgent | kEof), uint32_t{kEof});
  EXPECT_TRUE(end.ok());
}

TEST_P(UrgentTest, AwaitUrgentEndsByCancelByItsDeadlineAndWithTheConnection) {
  const OpId cancelled = Await();
  ASSERT_TRUE(server_.socket.Cancel(cancelled).ok());
  EXPECT_EQ(End(server_, cancelled).kind, ErrorKind::kCancelled);
  OpArgs args = server_.Args();
  args.deadline = server_.context.Now() + absl::Milliseconds(5);
  const OpId late = server_.Accepted(server_.socket.AwaitUrgent(args));
  EXPECT_EQ(End(server_, late).kind, ErrorKind::kDeadlineExceeded);
  const OpId all = Await();
  EXPECT_EQ(*server_.socket.CancelAll(Direction::kReceive), 1);
  EXPECT_EQ(End(server_, all).kind, ErrorKind::kCancelled);
  const OpId reset = Await();
  (void)client_.Close(CloseMode::kAbort);
  EXPECT_EQ(End(server_, reset).kind, ErrorKind::kPeerReset);
}

TEST_P(UrgentTest, ADeadlineTakesBackWhatIsNotAnnouncedAndFinishesWhatIs) {
  Memory& from = Make(client_, kLong);
  Memory& to = Make(server_, kLong);
  OpArgs args = client_.Args();
  args.deadline = client_.context.Now() + absl::Seconds(1);  // the first is announced by then
  const OpId announced = SendUrgent(from.All(), args);
  const OpId behind = SendUrgent(from.All(), args);

  EXPECT_EQ(End(client_, behind).kind, ErrorKind::kDeadlineExceeded);
  EXPECT_EQ(client_.Find(announced), nullptr);
  EXPECT_EQ(End(server_, server_.Recv(to.All(), RecvFlags::kWaitAll)).bytes, kLong);
  EndWell(client_, announced, kLong);
}

TEST_P(UrgentTest, WhatMeansNothingIsRefusedAndSaysWhatToDo) {
  Memory& memory = Make(client_, 100);
  const auto refused = [](const absl::StatusOr<OpId>& answer) {
    return Refuses(answer, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument);
  };
  std::array<std::byte, 4> bytes{};
  const OpArgs args = client_.Args();
  EXPECT_TRUE(refused(client_.socket.Send(memory.All(), SendFlags{2}, args)));
  EXPECT_TRUE(refused(client_.socket.SendCopy(bytes, SendFlags{6}, args)));
  EXPECT_TRUE(refused(client_.socket.Recv(memory.All(), RecvFlags{2}, args)));
  EXPECT_TRUE(refused(client_.socket.RecvCopy(absl::MakeSpan(bytes), RecvFlags{255}, args)));
  EXPECT_TRUE(refused(client_.socket.Send(memory.At(0, 0), SendFlags::kUrgent, args)));
  EXPECT_TRUE(refused(client_.socket.SendCopy({}, SendFlags::kUrgent, args)));
  OpArgs wrong = client_.Args();
  wrong.path = Path{7};
  EXPECT_TRUE(refused(client_.socket.Send(memory.All(), SendFlags::kNone, wrong)));
  OpArgs late = client_.Args();
  late.complete_at = CompleteAt{7};
  EXPECT_TRUE(refused(client_.socket.Send(memory.All(), SendFlags::kNone, late)));
}

ESDP_ON_EVERY_WORLD(UrgentTest);

}  // namespace
}  // namespace esdp::contract
