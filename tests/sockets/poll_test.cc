#include <array>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Socket::Poll: what could be done now, level-triggered.

namespace esdp::contract {
namespace {

class PollTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    Connect();
  }
  static OpId Poll(Side& side, uint32_t mask) { return Poll(side, mask, side.Args()); }
  static OpId Poll(Side& side, uint32_t mask, const OpArgs& args) {
    return side.Accepted(side.socket.Poll(mask, args));
  }
  uint64_t Ready(Side& side, uint32_t mask) {
    const Event event = End(side, Poll(side, mask));
    EXPECT_EQ(event.type, EventType::kPoll);
    EXPECT_TRUE(event.ok()) << event.status();
    return event.bytes;
  }
  void SendByte(Side& side, SendFlags flags = SendFlags::kNone) {
    const std::array<std::byte, 1> byte{};
    EndWell(side, side.Accepted(side.socket.SendCopy(byte, flags, side.Args())), 1);
  }
};

TEST_P(PollTest, AnIdleConnectionIsWritableAndNothingElse) {
  EXPECT_EQ(Ready(client_, kPollAll), uint64_t{kPollWritable});
  const OpId readable = Poll(client_, kPollReadable);
  Settle();
  EXPECT_EQ(client_.Find(readable), nullptr);
  ASSERT_TRUE(client_.socket.Cancel(readable).ok());
  EXPECT_EQ(End(client_, readable).kind, ErrorKind::kCancelled);
}

TEST_P(PollTest, ItEndsWhenBytesComeAndTakesNoneAway) {
  const OpId waits = Poll(server_, kPollReadable);
  Settle();
  EXPECT_EQ(server_.Find(waits), nullptr);
  SendByte(client_);
  EXPECT_EQ(End(server_, waits).bytes, uint64_t{kPollReadable});
  EXPECT_EQ(Ready(server_, kPollReadable | kPollWritable), uint64_t{kPollReadable | kPollWritable});
  Memory& to = Make(server_, 10);
  EndWell(server_, server_.Recv(to.All()), 1);
  EXPECT_EQ(Ready(server_, kPollAll), uint64_t{kPollWritable}) << "it was read";
}

TEST_P(PollTest, MemoryThatThePeerShowsIsReadable) {
  Memory& from = Make(client_, 200'000);
  Memory& to = Make(server_, 200'000);
  OpArgs args = client_.Args();
  args.path = Path::kZeroCopy;
  const OpId send = client_.Send(from.All(), args);
  EXPECT_EQ(Ready(server_, kPollReadable), uint64_t{kPollReadable});
  EXPECT_EQ(End(server_, server_.Recv(to.All(), RecvFlags::kWaitAll)).bytes, from.size());
  EndWell(client_, send, from.size());
}

TEST_P(PollTest, OneThatTakesNoMoreIsNotWritableUntilItsPeerReads) {
  Memory& from = Make(client_, 100'000);
  const std::vector<OpId> sends = FillUp(client_, from, 20, Path::kCopy);
  ASSERT_FALSE(sends.empty());
  const OpId writable = Poll(client_, kPollWritable);
  Settle();
  EXPECT_EQ(client_.Find(writable), nullptr);
  Memory& to = Make(server_, 100'000);
  for (uint64_t left = 20 * from.size(); left > 0;) {
    left -= End(server_, server_.Recv(to.All())).bytes;
  }
  EXPECT_EQ(End(client_, writable).bytes, uint64_t{kPollWritable});
}

TEST_P(PollTest, AnUrgentByteIsToldUntilAwaitUrgentHasTaken) {
  const OpId waits = Poll(server_, kPollUrgent);
  SendByte(client_, SendFlags::kUrgent);
  EXPECT_EQ(End(server_, waits).bytes, uint64_t{kPollUrgent});
  EXPECT_TRUE(End(server_, server_.Accepted(server_.socket.AwaitUrgent(server_.Args()))).ok());
  EXPECT_EQ(Ready(server_, kPollAll) & kPollUrgent, 0u);
}

TEST_P(PollTest, AfterThePeersShutdownItIsReadableAndEnded) {
  const OpId waits = Poll(server_, kPollPeerEnded);
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  EXPECT_EQ(End(server_, waits).bytes, uint64_t{kPollPeerEnded});
  EXPECT_EQ(Ready(server_, kPollAll), uint64_t{kPollReadable | kPollWritable | kPollPeerEnded});
}

TEST_P(PollTest, AConnectionThatFailsEndsItWhateverItWaitedFor) {
  const OpId waits = Poll(server_, kPollUrgent);
  Settle();
  (void)client_.Close(CloseMode::kAbort);
  const Event event = End(server_, waits);
  EXPECT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event.bytes, uint64_t{kPollFailed});
  EXPECT_EQ(Ready(server_, kPollAll),
            uint64_t{kPollReadable | kPollWritable | kPollPeerEnded | kPollFailed});
}

TEST_P(PollTest, ItsDeadlineEndsItAndSoDoesClose) {
  OpArgs args = server_.Args();
  args.deadline = server_.context.Now() + absl::Milliseconds(5);
  EXPECT_EQ(End(server_, Poll(server_, kPollUrgent, args)).kind, ErrorKind::kDeadlineExceeded);
  const OpId waits = Poll(server_, kPollUrgent);
  (void)server_.Close();
  EXPECT_EQ(End(server_, waits).kind, ErrorKind::kShutDown);
}

TEST_P(PollTest, WhatMeansNothingIsRefused) {
  EXPECT_TRUE(Refuses(server_.socket.Poll(0, server_.Args()), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(server_.socket.Poll(kPollAll + 1, server_.Args()),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
  Socket idle = server_.context.CreateSocket(Family::kIpv4).value();
  EXPECT_TRUE(Refuses(idle.Poll(kPollReadable, server_.Args()), ErrorKind::kWrongState,
                      absl::StatusCode::kFailedPrecondition));
}

ESDP_ON_EVERY_WORLD(PollTest);

}  // namespace
}  // namespace esdp::contract
