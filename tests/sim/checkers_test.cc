// That the checkers can fail: each is given a history with one fault, and finds it.

#include <array>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"
#include "tests/sim/completion_checker.h"
#include "tests/sim/content.h"
#include "tests/sim/memory_checker.h"
#include "tests/sim/stream_checker.h"
#include "tests/sim/wire_checker.h"

namespace esdp::simulation {
namespace {

namespace wire = sdp::wire;
using fabric::sim::Frame;
using fabric::sim::FrameKind;
using fabric::sim::Touch;
using fabric::sim::WireEnd;

// --- streams -------------------------------------------------------------------------------------

class StreamCheckerTest : public ::testing::Test {
 protected:
  std::vector<std::byte> Content(uint64_t seed, uint64_t length) {
    std::vector<std::byte> bytes(length);
    FillContent(seed, 0, bytes);
    return bytes;
  }
  void SendTwice() {
    checker_.SendEnded(checker_.SendPosted(1, 100), true, false, 0);
    checker_.SendEnded(checker_.SendPosted(2, 50), true, false, 100);
  }

  Findings findings_;
  StreamChecker checker_{findings_, "stream"};
};

TEST_F(StreamCheckerTest, AStreamThatIsRightIsLeftAlone) {
  SendTwice();
  const size_t cancelled = checker_.SendPosted(3, 10);
  checker_.SendEnded(cancelled, false, true, 150);
  checker_.SendEnded(checker_.SendPosted(4, 5), true, false, 150);
  checker_.Received(Content(1, 100), 0);
  checker_.Received(Content(2, 50), 100);
  checker_.Received(Content(4, 5), 150);
  checker_.EndOfStream();
  checker_.Finish(true);
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
}

TEST_F(StreamCheckerTest, FindsAWrongByte) {
  SendTwice();
  std::vector<std::byte> bytes = Content(1, 100);
  bytes[99] ^= std::byte{1};
  checker_.Received(bytes, 0);
  checker_.Finish(false);
  EXPECT_TRUE(findings_.Mention("byte 99 of the stream is wrong"));
}

TEST_F(StreamCheckerTest, FindsALostEndAndALostMiddle) {
  SendTwice();
  checker_.Received(Content(1, 100), 0);
  checker_.EndOfStream();
  checker_.Finish(false);
  EXPECT_TRUE(findings_.Mention("50 bytes lost of 150"));

  StreamChecker other(findings_, "other");
  other.SendEnded(other.SendPosted(1, 100), true, false, 0);
  std::vector<std::byte> bytes = Content(1, 100);
  bytes.erase(bytes.begin() + 40);
  other.Received(bytes, 0);
  other.Finish(false);
  EXPECT_TRUE(findings_.Mention("other: byte 40 of the stream is wrong"));
}

TEST_F(StreamCheckerTest, FindsBytesThatComeTwiceOrFromNowhere) {
  checker_.SendEnded(checker_.SendPosted(1, 100), true, false, 0);
  checker_.Received(Content(1, 100), 0);
  checker_.Received(Content(1, 100), 100);
  checker_.Finish(false);
  EXPECT_TRUE(findings_.Mention("100 bytes more received than sent"));
}

TEST_F(StreamCheckerTest, FindsBytesBehindTheEndAndWrongOffsets) {
  SendTwice();
  checker_.Received(Content(1, 100), 1);
  EXPECT_TRUE(findings_.Mention("offset is 1"));
  checker_.EndOfStream();
  checker_.Received(Content(2, 50), 100);
  EXPECT_TRUE(findings_.Mention("after the end"));
  StreamChecker other(findings_, "other");
  other.SendEnded(other.SendPosted(1, 100), true, false, 7);
  other.Finish(false);
  EXPECT_TRUE(findings_.Mention("a send says its offset is 7"));
}

TEST_F(StreamCheckerTest, FindsAnEndThatNeverCame) {
  SendTwice();
  checker_.Received(Content(1, 100), 0);
  checker_.Received(Content(2, 50), 100);
  checker_.Finish(true);
  EXPECT_TRUE(findings_.Mention("the end of the stream never came"));
}

// --- completions ---------------------------------------------------------------------------------

class CompletionCheckerTest : public ::testing::Test {
 protected:
  static constexpr SocketId kSocket{3};

  void Post(uint64_t op, EventType type, uint64_t length = 100, bool wait_all = false) {
    checker_.OnPosted(OpId{op}, {type, kSocket, length, wait_all});
  }
  Event EventOf(uint64_t op, EventType type, uint64_t bytes = 100,
                ErrorKind kind = ErrorKind::kNone, uint32_t flags = kTerminal) {
    Event event;
    event.op = OpId{op};
    event.type = type;
    event.socket = kSocket;
    event.bytes = bytes;
    event.kind = kind;
    event.code = kind == ErrorKind::kNone ? absl::StatusCode::kOk : absl::StatusCode::kAborted;
    event.flags = flags;
    return event;
  }
  void Tell(const Event& event) { checker_.OnEvent(event); }

  Findings findings_;
  CompletionChecker checker_{findings_, "station"};
};

TEST_F(CompletionCheckerTest, RightCompletionsAreLeftAlone) {
  Post(1, EventType::kSend);
  Post(2, EventType::kSend);
  Post(3, EventType::kRecv);
  Post(4, EventType::kClose);
  Tell(EventOf(2, EventType::kSend, 0, ErrorKind::kCancelled));  // may overtake
  Tell(EventOf(3, EventType::kRecv, 40));
  Tell(EventOf(1, EventType::kSend));
  Tell(EventOf(4, EventType::kClose, 0));
  checker_.Finish();
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
}

TEST_F(CompletionCheckerTest, FindsASecondTerminalEvent) {
  Post(1, EventType::kSend);
  Tell(EventOf(1, EventType::kSend));
  EXPECT_TRUE(findings_.empty());
  Tell(EventOf(1, EventType::kSend));
  EXPECT_TRUE(findings_.Mention("after the terminal one"));
}

TEST_F(CompletionCheckerTest, FindsAnOperationWithoutAnEnd) {
  Post(1, EventType::kSend);
  checker_.Finish();
  EXPECT_TRUE(findings_.Mention("operations without an end: send of 100 bytes"));
}

TEST_F(CompletionCheckerTest, FindsAnEventOfNobodysOperation) {
  Tell(EventOf(9, EventType::kSend));
  EXPECT_TRUE(findings_.Mention("never accepted"));
}

TEST_F(CompletionCheckerTest, FindsAnEventOutOfOrder) {
  Post(1, EventType::kSend);
  Post(2, EventType::kSend);
  Tell(EventOf(2, EventType::kSend));
  EXPECT_TRUE(findings_.Mention("it overtakes an earlier one"));
}

TEST_F(CompletionCheckerTest, FindsACancelledOperationThatOvertakesThoughItMovedBytes) {
  Post(1, EventType::kRecv);
  Post(2, EventType::kRecv);
  Tell(EventOf(2, EventType::kRecv, 1, ErrorKind::kCancelled));
  EXPECT_TRUE(findings_.Mention("it overtakes an earlier one"));
}

TEST_F(CompletionCheckerTest, FindsWrongCountsOfBytes) {
  Post(1, EventType::kSend);
  Tell(EventOf(1, EventType::kSend, 99));
  EXPECT_TRUE(findings_.Mention("a send that is not whole"));
  Post(2, EventType::kRecv);
  Tell(EventOf(2, EventType::kRecv, 101));
  EXPECT_TRUE(findings_.Mention("more bytes than the operation has"));
  Post(3, EventType::kRecv);
  Tell(EventOf(3, EventType::kRecv, 0));
  EXPECT_TRUE(findings_.Mention("a receive of nothing"));
  Post(4, EventType::kRecv, 100, true);
  Tell(EventOf(4, EventType::kRecv, 99));
  EXPECT_TRUE(findings_.Mention("that was to be filled is not"));
}

TEST_F(CompletionCheckerTest, FindsBytesBehindTheEndOfTheStream) {
  Post(1, EventType::kRecv);
  Post(2, EventType::kRecv);
  Tell(EventOf(1, EventType::kRecv, 0, ErrorKind::kNone, kTerminal | kEof));
  Tell(EventOf(2, EventType::kRecv, 5));
  EXPECT_TRUE(findings_.Mention("has not the same answer"));
}

TEST_F(CompletionCheckerTest, FindsTwoRootCauses) {
  Post(1, EventType::kSend);
  Post(2, EventType::kRecv);
  Tell(EventOf(1, EventType::kSend, 0, ErrorKind::kPeerReset));
  Tell(EventOf(2, EventType::kRecv, 0, ErrorKind::kPeerProtocol));
  EXPECT_TRUE(findings_.Mention("another cause than the first one"));
}

TEST_F(CompletionCheckerTest, FindsAnEventBehindThatOfClose) {
  Post(1, EventType::kSend);
  Post(2, EventType::kClose);
  Tell(EventOf(2, EventType::kClose, 0));
  Tell(EventOf(1, EventType::kSend, 0, ErrorKind::kCancelled));
  EXPECT_TRUE(findings_.Mention("an event after that of Close"));
}

TEST_F(CompletionCheckerTest, FindsAFaultOfTheLibrary) {
  Post(1, EventType::kSend);
  Tell(EventOf(1, EventType::kSend, 0, ErrorKind::kInternal));
  EXPECT_TRUE(findings_.Mention("a fault of the library"));
}

// --- memory --------------------------------------------------------------------------------------

TEST(MemoryCheckerTest, FindsEveryTouchOfWhatIsNotLent) {
  Findings findings;
  MemoryChecker checker(findings);
  std::vector<std::byte> arena(100);
  std::vector<std::byte> elsewhere(100);
  checker.AddArena(arena);
  checker.Lend(std::span(arena).subspan(10, 20), true);
  checker.Lend(std::span(arena).subspan(40, 20), false);

  checker.OnTouch(&arena[10], 20, Touch::kRemoteRead);
  checker.OnTouch(&arena[45], 10, Touch::kRemoteWrite);
  checker.OnTouch(&arena[40], 20, Touch::kReadTarget);
  checker.OnTouch(&elsewhere[0], 100, Touch::kRemoteWrite);
  EXPECT_TRUE(findings.empty());

  checker.OnTouch(&arena[9], 1, Touch::kRemoteRead);
  EXPECT_EQ(findings.count(), 1u) << "one byte before";
  checker.OnTouch(&arena[10], 21, Touch::kRemoteRead);
  EXPECT_EQ(findings.count(), 2u) << "one byte behind";
  checker.OnTouch(&arena[10], 1, Touch::kRemoteWrite);
  EXPECT_EQ(findings.count(), 3u) << "a write to what is sent from";
  checker.OnTouch(&arena[40], 1, Touch::kRemoteRead);
  EXPECT_EQ(findings.count(), 4u) << "a read of what is received into";
  checker.TakeBack(std::span(arena).subspan(40, 20));
  checker.OnTouch(&arena[45], 1, Touch::kReadTarget);
  EXPECT_EQ(findings.count(), 5u) << "after it was given back";
}

// --- the wire ------------------------------------------------------------------------------------

class WireCheckerTest : public ::testing::Test {
 protected:
  static constexpr WireEnd kOne{1, 7, true};
  static constexpr WireEnd kTwo{2, 7, false};

  // Both sides have four receives and take one advert.
  void SetUp() override {
    wire::Message hello{{}, wire::Hello{.local_receive_size = 4096}};
    hello.base.buffers = 4;
    std::array<std::byte, 256> bytes{};
    size_t size = wire::Encode(hello, 0, bytes);
    checker_.OnPrivateData(kOne, ConstBytes(bytes).first(size));
    wire::Message ack{{}, wire::HelloAck{.actual_receive_size = 4096}};
    ack.base.buffers = 4;
    size = wire::Encode(ack, 0, bytes);
    checker_.OnPrivateData(kTwo, ConstBytes(bytes).first(size));
    ASSERT_TRUE(findings_.empty());
  }
  Frame FrameOf(const wire::Body& body, uint32_t sequence, size_t payload = 0,
                uint32_t acknowledged = 0) {
    wire::Message message{{}, body};
    message.base.buffers = 4;
    message.base.sequence = sequence;
    message.base.acknowledged = acknowledged;
    Frame frame{.kind = FrameKind::kSend};
    frame.payload.resize(wire::HeaderBytes(wire::IdOf(message)) + payload);
    (void)wire::Encode(message, payload, frame.payload);
    return frame;
  }
  void Send(Frame frame) { checker_.OnTransmit(kOne, frame); }
  void Carry(const WireEnd& from, const WireEnd& to, Frame frame) {
    checker_.OnTransmit(from, frame);
    checker_.OnArrive(to, frame);
  }

  Findings findings_;
  Marks marks_;
  WireChecker checker_{findings_, marks_};
};

TEST_F(WireCheckerTest, FindsAGapInTheSequence) {
  Send(FrameOf(wire::Data{}, 1));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::Data{}, 3));
  EXPECT_TRUE(findings_.Mention("MSeq 3 follows 1"));
}

TEST_F(WireCheckerTest, FindsPayloadThatLeavesTooFewCredits) {
  Send(FrameOf(wire::Data{}, 1, 10));
  Send(FrameOf(wire::Data{}, 2, 10));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::Data{}, 3, 10));
  EXPECT_TRUE(findings_.Mention("overdraws its credits with Data"));
}

TEST_F(WireCheckerTest, FindsAMessageWithoutAnyCredit) {
  for (uint32_t i = 1; i <= 4; ++i) Send(FrameOf(wire::Data{}, i));
  EXPECT_TRUE(findings_.empty());
  EXPECT_EQ(marks_.Count("the last credit used"), 1u);
  Send(FrameOf(wire::Data{}, 5));
  EXPECT_TRUE(findings_.Mention("overdraws"));
}

TEST_F(WireCheckerTest, ANewHeaderGivesNewCredits) {
  for (uint32_t i = 1; i <= 4; ++i) Carry(kOne, kTwo, FrameOf(wire::Data{}, i));
  Carry(kTwo, kOne, FrameOf(wire::Data{}, 1, 0, 4));
  Send(FrameOf(wire::Data{}, 5, 1));
  EXPECT_TRUE(findings_.empty());
}

TEST_F(WireCheckerTest, FindsASecondAdvertWhereOneIsTaken) {
  Send(FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::SrcAvail{100, 1, 0}, 2, 1));
  EXPECT_TRUE(findings_.Mention("more SrcAvails than the peer takes"));
}

TEST_F(WireCheckerTest, AnAdvertEndsWhenItIsReadOrGivenBack) {
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{40}, 1, 0, 1));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{59}, 2, 0, 1));
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 2, 1, 2));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{40}, 3, 0, 2));
  Carry(kTwo, kOne, FrameOf(wire::SendSm{}, 4, 0, 2));
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 3, 1, 4));
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  EXPECT_EQ(marks_.Count("SendSm after a part was read"), 1u);
  EXPECT_EQ(marks_.Count("an advert read in parts"), 2u);
}

TEST_F(WireCheckerTest, FindsMoreReadThanWasAdvertised) {
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{100}, 1, 0, 1));
  EXPECT_TRUE(findings_.Mention("more than was advertised"));
}

TEST_F(WireCheckerTest, FindsAnAnswerToNoAdvert) {
  Carry(kTwo, kOne, FrameOf(wire::SendSm{}, 1));
  EXPECT_TRUE(findings_.Mention("answers an advert that is not there"));
}

TEST_F(WireCheckerTest, FindsBytesBehindDisConn) {
  Send(FrameOf(wire::DisConn{}, 1));
  Send(FrameOf(wire::Data{}, 2));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::Data{}, 3, 1));
  EXPECT_TRUE(findings_.Mention("user bytes after DisConn"));
}

TEST_F(WireCheckerTest, FindsAnAcknowledgementOfWhatHasNotArrived) {
  Send(FrameOf(wire::Data{}, 1, 0, 1));
  EXPECT_TRUE(findings_.Mention("acknowledges a message that has not arrived"));
}

TEST_F(WireCheckerTest, FindsWhatIsNoMessage) {
  Send({.kind = FrameKind::kSend, .payload = std::vector<std::byte>(16)});
  EXPECT_TRUE(findings_.Mention("sends what is no message"));
}

TEST_F(WireCheckerTest, AConnectionWithAHostilePeerIsNotJudged) {
  checker_.Disregard(7);
  Send(FrameOf(wire::Data{}, 30));
  EXPECT_TRUE(findings_.empty());
}

}  // namespace
}  // namespace esdp::simulation
