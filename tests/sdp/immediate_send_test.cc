#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <functional>
#include <ostream>
#include <string>

#include "impl/sdp/connection.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

// What is small and has nothing before it is sent in one step and without a queue. Nobody but the
// clock may notice.

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

AskSend Small(uint32_t bytes = 10) {
  AskSend ask;
  ask.piece = {OperationId{77}, bytes, 0};
  return ask;
}

AskSend Delivered() {
  AskSend traits;
  traits.complete_at = CompleteAt::kDelivered;
  return traits;
}

using CounterValues = std::array<uint64_t, sizeof(Counters) / sizeof(uint64_t)>;
CounterValues CountersOf(Solo& solo) {
  return std::bit_cast<CounterValues>(solo.core().counters());
}

constexpr Solo::Peer kFewBuffers = {.buffers = 4};

class AtOnceTest : public ::testing::Test {
 protected:
  AtOnceTest() : solo_(SmallConfig(true)) {}
  // Sends that have left before the next one is asked for, down to two credits of four.
  static void UseUpCredits(Solo& solo, const AskSend& traits = {}) {
    for (int i = 0; i < 2; ++i) {
      solo.Send(10, traits);
      solo.FinishSends();
    }
  }
  Solo solo_;
};

// --- what it yields ---

TEST_F(AtOnceTest, ASmallSendIsCopiedSentAndFinishedInOneStepWithNothingElse) {
  solo_.Establish();
  ASSERT_TRUE(solo_.core().MaySendImmediate(Small()));
  const OperationId send = solo_.Send(10);

  ASSERT_EQ(solo_.last().size(), 3u);
  const auto* copy = std::get_if<CopyOut>(&solo_.last()[0]);
  const auto* sent = std::get_if<Send>(&solo_.last()[1]);
  const auto* finish = std::get_if<FinishOperation>(&solo_.last()[2]);
  ASSERT_TRUE(copy != nullptr && sent != nullptr && finish != nullptr);
  EXPECT_EQ(copy->source, (OperationRange{send, 10, 0}));
  EXPECT_EQ(copy->buffer_offset, 0u);
  EXPECT_EQ(sent->send_buffer, copy->buffer);
  EXPECT_EQ(sent->copied_bytes, 10u);
  EXPECT_EQ(sent->gather_count, 0u);
  EXPECT_TRUE(std::holds_alternative<wire::Data>(sent->message.body));
  EXPECT_EQ(finish->operation, send);
  EXPECT_EQ(finish->outcome, Outcome::kDone);
  EXPECT_EQ(finish->bytes, 10u);
  EXPECT_EQ(finish->bytes_zero_copy, 0u);
  EXPECT_EQ(finish->stream_offset, 0u);
}

TEST_F(AtOnceTest, TheBytesOfAPieceInTheMiddleOfItsMemoryAreTheOnesCopied) {
  solo_.Establish();
  AskSend ask = Small(20);
  ask.piece.offset = 4096;
  solo_.Step(ask);

  ASSERT_EQ(solo_.Last<CopyOut>().size(), 1u);
  EXPECT_EQ(solo_.Last<CopyOut>()[0].source, ask.piece);
}

TEST_F(AtOnceTest, PositionsInTheStreamGoOnFromOneWayToTheOther) {
  solo_.Establish();
  const OperationId at_once = solo_.Send(10);
  const OperationId queued = solo_.Send(20);
  const OperationId gathered = solo_.Send(300);
  solo_.FinishSends();
  ASSERT_TRUE(solo_.core().MaySendImmediate(Small()));
  const OperationId again = solo_.Send(40);
  solo_.FinishSends();
  const OperationId last = solo_.Send(50);

  EXPECT_EQ(solo_.Result(at_once)->stream_offset, 0u);
  EXPECT_EQ(solo_.Result(queued)->stream_offset, 10u);
  EXPECT_EQ(solo_.Result(gathered)->stream_offset, 30u);
  EXPECT_EQ(solo_.Result(again)->stream_offset, 330u);
  EXPECT_EQ(solo_.Result(last)->stream_offset, 370u);
  EXPECT_EQ(solo_.core().counters().bytes_sent_copied, 420u);
  EXPECT_EQ(solo_.core().counters().sends_copied, 5u);
}

TEST_F(AtOnceTest, ItLeavesTheConnectionAsTheCommonWayDoes) {
  solo_.Establish();
  Solo common(SmallConfig(true));
  common.Establish();
  ASSERT_EQ(solo_.core().digest(), common.core().digest());
  uint64_t offset = 0;
  for (const uint32_t bytes : {1u, 10u, 200u, 7u, 64u, 3u}) {
    ASSERT_TRUE(solo_.core().MaySendImmediate(Small(bytes))) << offset;
    const OperationId one = solo_.Send(bytes);
    const OperationId other = common.Send(bytes, Delivered());
    ASSERT_EQ(solo_.Last<Send>().size(), 1u);
    ASSERT_EQ(common.Last<Send>().size(), 1u);
    const Send mine = solo_.Last<Send>()[0];
    const Send theirs = common.Last<Send>()[0];
    EXPECT_EQ(mine.send_buffer, theirs.send_buffer);
    EXPECT_EQ(mine.copied_bytes, theirs.copied_bytes);
    EXPECT_EQ(mine.message.base.sequence, theirs.message.base.sequence);
    EXPECT_EQ(mine.message.base.acknowledged, theirs.message.base.acknowledged);
    EXPECT_EQ(mine.message.base.buffers, theirs.message.base.buffers);
    for (Solo* each : {&solo_, &common}) {
      each->FinishSends();
      each->Receive(5);
      each->Arrive(wire::Data{}, 5);  // acknowledges what we have sent
    }
    ASSERT_TRUE(common.Result(other));
    EXPECT_EQ(solo_.Result(one)->stream_offset, offset);
    EXPECT_EQ(common.Result(other)->stream_offset, offset);
    EXPECT_EQ(CountersOf(solo_), CountersOf(common)) << "behind byte " << offset;
    EXPECT_EQ(solo_.core().digest(), common.core().digest()) << "behind byte " << offset;
    offset += bytes;
  }
}

// R4.1.5
TEST_F(AtOnceTest, ItTakesTheAcknowledgementAlongThatIsDue) {
  solo_.Establish();
  solo_.Receive(10);
  solo_.Arrive(wire::Data{}, 10);
  ASSERT_TRUE(solo_.core().MaySendImmediate(Small()));
  solo_.Send(10);
  EXPECT_EQ(solo_.Last<Send>()[0].message.base.acknowledged, 1u);

  solo_.now = Time{} + std::chrono::milliseconds(10);
  solo_.Step(TimerFired{Timer::kAcknowledge});

  EXPECT_EQ(solo_.Last<Send>().size(), 0u);
}

TEST_F(AtOnceTest, OneThatWaitsForDeliveryBehindItEndsByTheAcknowledgementOfItsOwnMessage) {
  solo_.Establish();
  solo_.Send(10);
  solo_.FinishSends();
  const OperationId second = solo_.Send(10, Delivered());
  MessageArrived first_only = solo_.Next(wire::Data{});
  first_only.message.base.acknowledged = 1;
  solo_.Step(first_only);
  EXPECT_FALSE(solo_.Result(second));

  solo_.Arrive(wire::Data{});

  EXPECT_TRUE(solo_.Result(second));
}

TEST_F(AtOnceTest, AStallThatACancelHasEndedDoesNotHideTheNextOne) {
  for (const bool at_once : {false, true}) {
    Solo solo(SmallConfig(true));
    solo.Establish(kFewBuffers);
    UseUpCredits(solo);
    const OperationId waits = solo.Send(300);
    ASSERT_EQ(solo.core().counters().credit_stalls, 1u);
    solo.Step(AskCancel{waits, CancelMode::kIfNotStarted, Outcome::kCancelled});
    ASSERT_EQ(solo.Result(waits)->outcome, Outcome::kCancelled);
    solo.Receive(10);
    solo.Arrive(wire::Data{}, 10);  // four credits again
    ASSERT_TRUE(solo.core().MaySendImmediate(Small()));
    UseUpCredits(solo, at_once ? AskSend{} : Delivered());

    solo.Send(300);

    EXPECT_EQ(solo.core().counters().credit_stalls, 2u) << (at_once ? "at once" : "common way");
  }
}

// --- when it may not ---

TEST_F(AtOnceTest, NothingMayBeSentAtOnceBeforeTheConnectionIsEstablished) {
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));
  solo_.Step(AskConnect{});
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));

  Established established;
  established.hello_ack = solo_.PeerHelloAck({});
  established.reads_out_max = established.reads_in_max = 4;
  solo_.Step(established);

  EXPECT_TRUE(solo_.core().MaySendImmediate(Small()));
}

TEST_F(AtOnceTest, NothingMayWhileAMessageOfOursIsInFlight) {
  solo_.Establish();
  solo_.Send(10);
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));

  solo_.Step(SendFinished{});

  EXPECT_TRUE(solo_.core().MaySendImmediate(Small()));
}

TEST_F(AtOnceTest, NothingMayOvertakeAnOperationThatWaitsForDelivery) {
  solo_.Establish();
  solo_.Send(10, Delivered());
  solo_.FinishSends();
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));

  solo_.Arrive(wire::Data{});

  EXPECT_TRUE(solo_.core().MaySendImmediate(Small()));
}

// R4.3.4
TEST_F(AtOnceTest, NothingMayWithTwoCreditsAndASendThenWaits) {
  solo_.Establish(kFewBuffers);
  UseUpCredits(solo_);
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));
  solo_.Send(10);
  EXPECT_EQ(solo_.Last<Send>().size(), 0u);

  solo_.Arrive(wire::Data{});

  EXPECT_EQ(solo_.Last<Send>().size(), 1u);
}

// R15.3
TEST_F(AtOnceTest, NothingMayTakeASlotThatIsForControl) {
  Config config = SmallConfig(true);
  for (const bool has_slot : {true, false}) {
    config.send_work_max = has_slot ? 6 : 5;
    Solo solo(config);
    solo.Establish();
    EXPECT_TRUE(solo.core().MaySendImmediate(Small()));
    solo.Receive(10);
    solo.Arrive(wire::Data{}, 10);
    solo.now += std::chrono::milliseconds(10);
    solo.Step(TimerFired{Timer::kAcknowledge});
    ASSERT_EQ(solo.Last<Send>().size(), 1u) << "a bare Data of ours is in flight";
    EXPECT_EQ(solo.core().MaySendImmediate(Small()), has_slot);
    solo.FinishSends();
    EXPECT_TRUE(solo.core().MaySendImmediate(Small()));
  }
}

TEST_F(AtOnceTest, NothingMayAfterShutdown) {
  solo_.Establish();
  solo_.Step(AskShutdown{OperationId{90}});
  solo_.FinishSends();
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));
  const OperationId late = solo_.Send(10);
  EXPECT_EQ(solo_.Last<Send>().size(), 0u);
  EXPECT_EQ(solo_.Result(late)->outcome, Outcome::kShutDown);
}

TEST_F(AtOnceTest, NothingMayAfterTheConnectionIsLost) {
  solo_.Establish();
  solo_.Step(ConnectionLost{});
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));
}

TEST_F(AtOnceTest, NothingMayWhileThePeersAdvertIsOutstanding) {
  solo_.Establish();
  solo_.Arrive(wire::SrcAvail{10000, 1, 0}, 1);
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small()));
}

TEST_F(AtOnceTest, NothingMayThatThePeersBuffersDoNotTakeInOneMessage) {
  Solo::Peer peer;
  peer.receive_bytes = wire::kBaseHeaderBytes + 100;
  solo_.Establish(peer);
  EXPECT_TRUE(solo_.core().MaySendImmediate(Small(100)));
  EXPECT_FALSE(solo_.core().MaySendImmediate(Small(101)));
}

struct Wish {
  std::string name;
  bool may;
  std::function<void(AskSend&)> tell;
};
void PrintTo(const Wish& wish, std::ostream* out) { *out << wish.name; }

class AtOnceWishTest : public ::testing::TestWithParam<Wish> {};

// Of a connection that is at rest.
TEST_P(AtOnceWishTest, DecidesWhetherASmallSendMayBeSentAtOnce) {
  Solo solo(SmallConfig(true));
  solo.Establish();
  AskSend ask = Small();
  GetParam().tell(ask);
  EXPECT_EQ(solo.core().MaySendImmediate(ask), GetParam().may);
}

INSTANTIATE_TEST_SUITE_P(
    On, AtOnceWishTest,
    ::testing::Values(
        Wish{"Plain", true, [](AskSend&) {}},
        Wish{"Urgent", false, [](AskSend& a) { a.urgent = true; }},
        Wish{"MoreFollows", false, [](AskSend& a) { a.more = true; }},
        Wish{"Empty", false, [](AskSend& a) { a.piece.length = 0; }},
        Wish{"AsLongAsIsCopied", true, [](AskSend& a) { a.piece.length = 200; }},
        Wish{"LongerThanIsCopied", false, [](AskSend& a) { a.piece.length = 201; }},
        Wish{"Delivered", false, [](AskSend& a) { a.complete_at = CompleteAt::kDelivered; }},
        Wish{"Adaptive", false, [](AskSend& a) { a.adaptive = true; }},
        Wish{"NotCopyable", false, [](AskSend& a) { a.copyable = false; }},
        Wish{"ZeroCopyOfHiddenMemory", true, [](AskSend& a) { a.path = Path::kZeroCopy; }},
        Wish{"ZeroCopy", false,
             [](AskSend& a) {
               a.path = Path::kZeroCopy;
               a.exposable = true;
             }},
        Wish{"FromTheThresholdOn", false,
             [](AskSend& a) {
               a.exposable = true;
               a.zcopy_min = 10;
             }},
        Wish{"BelowTheThreshold", true,
             [](AskSend& a) {
               a.exposable = true;
               a.zcopy_min = 11;
             }},
        Wish{"CopiedWhateverTheThreshold", true,
             [](AskSend& a) {
               a.exposable = true;
               a.path = Path::kCopy;
             }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace esdp::sdp
