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

// --- a socket that listens ---

class PollListenerTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    address_ = Listen();
    client_.socket = client_.context.CreateSocket(Family::kIpv4).value();
  }
  OpId Poll(uint32_t mask) { return Poll(mask, server_.Args()); }
  OpId Poll(uint32_t mask, const OpArgs& args) {
    return server_.Accepted(listener_.Poll(mask, args));
  }
  void Come() { (void)client_.Accepted(client_.socket.Connect(address_, client_.Args())); }
  bool Waits(OpId op) {
    Settle();
    return server_.Find(op) == nullptr;
  }

  Address address_;
};

TEST_P(PollListenerTest, AConnectionThatWaitsMakesItReadableUntilAnAcceptTakesIt) {
  const OpId waits = Poll(kPollAll);
  const OpId beside = Poll(kPollReadable);
  EXPECT_TRUE(Waits(waits));
  Come();
  const Event event = End(server_, waits);
  EXPECT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event.type, EventType::kPoll);
  EXPECT_EQ(event.bytes, uint64_t{kPollReadable});
  EXPECT_EQ(End(server_, beside).bytes, uint64_t{kPollReadable});
  EXPECT_EQ(End(server_, Poll(kPollReadable)).bytes, uint64_t{kPollReadable}) << "it is a level";
  const Event accepted = End(server_, server_.Accepted(listener_.Accept(1, server_.Args())));
  server_.socket = server_.context.TakeAccepted(accepted.accepted).value();
  const OpId again = Poll(kPollReadable);
  EXPECT_TRUE(Waits(again));
  EXPECT_TRUE(listener_.Cancel(again).ok());
  EXPECT_EQ(End(server_, again).kind, ErrorKind::kCancelled);
}

TEST_P(PollListenerTest, AConnectionThatAPostedAcceptTakesMakesItNotReadable) {
  const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
  const OpId waits = Poll(kPollReadable);
  Come();
  const Event accepted = End(server_, accept);
  server_.socket = server_.context.TakeAccepted(accepted.accepted).value();
  EXPECT_TRUE(Waits(waits));
  listener_ = {};
  EXPECT_EQ(End(server_, waits).kind, ErrorKind::kShutDown);
}

TEST_P(PollListenerTest, AConnectionThatHasGoneAgainMakesItNotReadable) {
  const OpId first = Poll(kPollReadable);
  Come();
  EXPECT_TRUE(End(server_, first).ok());
  (void)client_.Close(CloseMode::kAbort);
  EXPECT_TRUE(Pump([&] { return listener_.Stats().ended_before_accept == 1; }));
  const OpId waits = Poll(kPollReadable);
  EXPECT_TRUE(Waits(waits));
  EXPECT_TRUE(listener_.Cancel(waits).ok());
  EXPECT_EQ(End(server_, waits).kind, ErrorKind::kCancelled);
}

TEST_P(PollListenerTest, ItIsReadableAgainOnceTheAcceptIsCancelledThatWouldHaveTaken) {
  EventQueue narrow = server_.context.CreateQueue({.depth = 1}).value();
  ASSERT_TRUE(listener_.Poll(kPollUrgent, {narrow}).ok());  // takes the one slot
  EXPECT_FALSE(listener_.Accept(1, {narrow}).ok());
  const OpId accept = server_.Accepted(listener_.Accept(0, server_.Args()));
  const OpId waits = Poll(kPollReadable);
  EXPECT_TRUE(Waits(waits));
  EXPECT_TRUE(listener_.Cancel(accept).ok());
  Come();
  EXPECT_EQ(End(server_, waits).bytes, uint64_t{kPollReadable});
  listener_ = {};
  Event last;
  EXPECT_EQ(narrow.TryDequeue(absl::MakeSpan(&last, 1)).value(), 1u);
  EXPECT_EQ(last.kind, ErrorKind::kShutDown);
}

TEST_P(PollListenerTest, ItsDeadlineEndsItAndSoDoesClose) {
  OpArgs args = server_.Args();
  args.deadline = server_.context.Now() + absl::Milliseconds(5);
  EXPECT_EQ(End(server_, Poll(kPollReadable, args)).kind, ErrorKind::kDeadlineExceeded);
  const OpId waits = Poll(kPollReadable);
  (void)server_.Accepted(listener_.Close(CloseMode::kGraceful, server_.Args()));
  EXPECT_EQ(Next(server_).op, waits) << "before the event of Close";
  EXPECT_TRUE(Refuses(listener_.Poll(kPollReadable, server_.Args()), ErrorKind::kShutDown,
                      absl::StatusCode::kFailedPrecondition));
}

TEST_P(PollListenerTest, WhatMeansNothingIsRefused) {
  for (const uint32_t mask : {0u, kPollAll + 1}) {
    EXPECT_TRUE(Refuses(listener_.Poll(mask, server_.Args()), ErrorKind::kInvalidArgument,
                        absl::StatusCode::kInvalidArgument));
  }
}

ESDP_ON_EVERY_WORLD(PollTest);
ESDP_ON_EVERY_WORLD(PollListenerTest);

}  // namespace
}  // namespace esdp::contract
