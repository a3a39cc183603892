// That the checkers can fail: each is given a history with one fault, and finds it.

#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/checkers/completion_checker.h"
#include "tests/sim/checkers/content.h"
#include "tests/sim/checkers/memory_checker.h"
#include "tests/sim/checkers/stream_checker.h"

namespace esdp::simulation {
namespace {

using fabric::sim::Touch;

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

TEST_F(StreamCheckerTest, FindsUrgentBytesOutOfPlaceOrNotThere) {
  const auto judge = [&](uint64_t at, uint64_t told, bool ended) {
    Findings findings;
    StreamChecker checker(findings, "stream");
    checker.SendEnded(checker.SendPosted(1, 100, true), true, false, 0);
    checker.SendEnded(checker.SendPosted(2, 50), true, false, 100);
    const std::vector<std::byte> bytes = Content(1, 100);
    checker.Received(std::span(bytes).first(40), 0, at == 40);
    checker.Received(std::span(bytes).subspan(40), 40, at == 100);
    checker.Received(Content(2, 50), 100);
    for (uint64_t i = 0; i < told; ++i) (void)checker.UrgentTold();
    if (ended) checker.UrgentEnded();
    checker.EndOfStream();
    checker.Finish(true);
    return findings.empty() ? "" : findings.texts()[0];
  };
  EXPECT_EQ(judge(100, 1, true), "");
  EXPECT_EQ(judge(100, 0, false), "");
  EXPECT_EQ(judge(40, 1, true), "stream: byte 39 is received as urgent and was not sent so");
  EXPECT_EQ(judge(0, 1, true), "stream: byte 99 was sent as urgent and not received so");
  EXPECT_EQ(judge(100, 2, true), "stream: 2 urgent bytes are told of, 1 were sent");
  EXPECT_EQ(judge(100, 0, true),
            "stream: no urgent byte is left to tell of, though of 1 only 0 were");
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

TEST_F(CompletionCheckerTest, FindsUrgentNewsOutOfOrderOrBehindTheLast) {
  for (uint64_t op = 1; op <= 3; ++op) Post(op, EventType::kUrgent, 0);
  Tell(EventOf(2, EventType::kUrgent, 0, ErrorKind::kNone, kTerminal | kUrgent));
  EXPECT_TRUE(findings_.Mention("it overtakes an earlier one"));
  EXPECT_EQ(findings_.count(), 1u);
  Tell(EventOf(1, EventType::kUrgent, 0, ErrorKind::kNone, kTerminal | kEof));
  EXPECT_EQ(findings_.count(), 1u);
  Tell(EventOf(3, EventType::kUrgent, 0, ErrorKind::kNone, kTerminal | kUrgent));
  EXPECT_TRUE(findings_.Mention("an urgent byte after the last one"));
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

}  // namespace
}  // namespace esdp::simulation
