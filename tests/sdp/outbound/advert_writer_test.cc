#include "impl/sdp/outbound/advert_writer.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "impl/base/random.h"
#include "impl/sdp/inbound/sink_adverts.h"

namespace esdp::sdp {
namespace {

using Legality = AdvertWriter::Legality;

class AdvertWriterTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLength = 10000;
  static constexpr uint32_t kMessage = 1000;
  static constexpr size_t kMax = 4;

  const char* Advert(uint32_t non_discards = 0, Legality legality = Legality::kUsable,
                     uint32_t length = kLength) {
    const AdvertWriter::Arrival arrival =
        writer_.OnSinkAvail({length, ++key_, 0x4000, non_discards}, legality, kMessage, kMax);
    stale_ += arrival.stale ? 1 : 0;
    return arrival.violation;
  }
  Write WriteBytes(uint32_t bytes) { return writer_.StartWrite({OperationId{1}, bytes, 0}); }

  AdvertWriter writer_;
  uint32_t key_ = 99;  // the first advert's is 100
  int stale_ = 0;
};

// R17.5
TEST_F(AdvertWriterTest, AnAdvertIsIllegalUnlessTheHalfIsPipelined) {
  EXPECT_STREQ(Advert(0, Legality::kIllegal), "SinkAvail: the half is not Pipelined");
}

// R5.14
TEST_F(AdvertWriterTest, MoreThanMaxAdvertsIsAViolation) {
  for (size_t i = 0; i < kMax; ++i) EXPECT_EQ(Advert(), nullptr);
  EXPECT_STREQ(Advert(), "SinkAvail: more adverts than MaxAdverts");
}

TEST_F(AdvertWriterTest, AnAdvertTooSmallForAMessageThatCrossesItIsAViolation) {
  EXPECT_NE(Advert(0, Legality::kUsable, kMessage - 1), nullptr);
  EXPECT_EQ(Advert(0, Legality::kUsable, kMessage), nullptr);
}

// R3.8.2
TEST_F(AdvertWriterTest, LengthsAndAddressesAreCheckedBeforeUse) {
  EXPECT_STREQ(Advert(0, Legality::kUsable, 0), "SinkAvail.Len: is 0");
  EXPECT_STREQ(Advert(0, Legality::kUsable, (1u << 31) + 1), "SinkAvail.Len: above 2^31");
  EXPECT_STREQ(
      writer_.OnSinkAvail({kLength, 1, ~uint64_t{0} - 10, 0}, Legality::kUsable, kMessage, kMax)
          .violation,
      "SinkAvail.VA: the range wraps");
  EXPECT_EQ(writer_.OnSinkAvail({kLength, 1, 0, 0}, Legality::kUsable, kMessage, kMax).violation,
            nullptr)
      << "any address is good, 0 too";
}

TEST_F(AdvertWriterTest, OnlyAFreshAdvertVoidsWhatWeHaveAdvertised) {
  writer_.OnPayloadPosted();
  const auto fresh = [this](uint32_t non_discards, Legality legality) {
    return writer_.OnSinkAvail({kLength, 1, 0, non_discards}, legality, kMessage, kMax).fresh;
  };
  EXPECT_TRUE(fresh(1, Legality::kUsable));
  EXPECT_FALSE(fresh(0, Legality::kUsable));
  writer_.LeavePipelined();
  EXPECT_TRUE(fresh(0, Legality::kIgnored));
  EXPECT_FALSE(fresh(7, Legality::kIgnored));
}

TEST_F(AdvertWriterTest, WritesFollowEachOtherWithinTheOldestAdvert) {
  Advert();
  Advert();
  EXPECT_EQ(writer_.room(), kLength);
  const Write first = WriteBytes(4000);
  EXPECT_EQ(first.target, (RemoteRange{100, 0x4000}));
  const Write second = WriteBytes(6000);
  EXPECT_EQ(second.target, (RemoteRange{100, 0x4000 + 4000}));
  EXPECT_EQ(writer_.room(), 0u) << "the next advert waits for this one's completion";

  EXPECT_EQ(writer_.TakeRdmaWrCompl().message.length, kLength);
  EXPECT_EQ(writer_.room(), kLength);
  EXPECT_EQ(WriteBytes(1).target.key, 101u);
}

// R8.1.3
TEST_F(AdvertWriterTest, AnAnswerIsAwaitedUntilThePeerHasHeardOfTheLastCompletion) {
  EXPECT_FALSE(writer_.awaits_answer());
  writer_.OnCompletionPosted(0xffffffff);
  writer_.OnAcknowledged(0xfffffffe);
  EXPECT_TRUE(writer_.awaits_answer());
  writer_.OnAcknowledged(0);
  EXPECT_FALSE(writer_.awaits_answer());
}

TEST_F(AdvertWriterTest, AShortCompletionCompletesTheAdvertWhole) {
  Advert();
  WriteBytes(1);
  EXPECT_TRUE(writer_.in_process());
  const AdvertWriter::Completion completion = writer_.TakeRdmaWrCompl();
  EXPECT_EQ(completion.message.length, 1u);
  EXPECT_EQ(completion.finished_key, 100u);
  EXPECT_EQ(writer_.live(), 0u);
}

// R8.2.3, R8.2.4
TEST_F(AdvertWriterTest, TheWorkedExampleOfTheStandardDropsTwoOfThree) {
  writer_.OnPayloadPosted();
  writer_.OnPayloadPosted();
  ASSERT_EQ(writer_.potential_non_discards(), 2u);
  Advert(0);
  EXPECT_EQ(writer_.live(), 0u);
  EXPECT_EQ(writer_.potential_non_discards(), 1u);
  Advert(0);
  EXPECT_EQ(writer_.live(), 0u);
  EXPECT_EQ(writer_.potential_non_discards(), 0u);
  Advert(0);
  EXPECT_EQ(writer_.live(), 1u);
  EXPECT_EQ(stale_, 2);
}

// R8.2.8
TEST_F(AdvertWriterTest, PayloadDropsTheOldestLiveAdvertAndDoesNotCount) {
  Advert();
  Advert();
  writer_.OnPayloadPosted();
  EXPECT_EQ(writer_.potential_non_discards(), 0u);
  EXPECT_EQ(WriteBytes(1).target.key, 101u);
}

TEST_F(AdvertWriterTest, AStaleAdvertDoesNotCountTowardsMaxAdverts) {
  for (size_t i = 0; i < kMax; ++i) Advert();
  writer_.OnPayloadPosted();
  Advert();
  EXPECT_EQ(writer_.live(), kMax);
  EXPECT_EQ(Advert(7), nullptr) << "stale: its place was free at the peer";
}

// R8.4.2, R8.4.4
TEST_F(AdvertWriterTest, ACancelWithNothingLiveIsNotAnswered) {
  writer_.OnSinkAvailCancel();
  EXPECT_FALSE(writer_.ack_owed());
}

// R8.4.3, R8.4.4
TEST_F(AdvertWriterTest, ACancelDropsWhatIsLiveAndIsAnsweredOnce) {
  Advert();
  Advert();
  writer_.OnSinkAvailCancel();
  EXPECT_EQ(writer_.live(), 0u);
  EXPECT_TRUE(writer_.ack_owed());
  writer_.TakeSinkCancelAck();
  EXPECT_FALSE(writer_.ack_owed());
}

// R8.4.3, R8.4.6
TEST_F(AdvertWriterTest, ACancelLetsTheAdvertInProcessBeCompletedShortAndOwesNothingForIt) {
  Advert();
  WriteBytes(10);
  writer_.OnSinkAvailCancel();
  EXPECT_EQ(writer_.room(), 0u) << "no new write";
  EXPECT_TRUE(writer_.cancelled());
  EXPECT_EQ(writer_.TakeRdmaWrCompl().message.length, 10u);
  EXPECT_FALSE(writer_.ack_owed());
}

TEST_F(AdvertWriterTest, TheAnswerToACancelComesBehindTheCompletion) {
  Advert();
  Advert();
  WriteBytes(10);
  writer_.OnSinkAvailCancel();
  EXPECT_FALSE(writer_.ack_owed());
  writer_.TakeRdmaWrCompl();
  EXPECT_TRUE(writer_.ack_owed());
}

TEST_F(AdvertWriterTest, StaleAdvertsBeforeACancelOweNoAnswer) {
  writer_.OnPayloadPosted();
  Advert(0);
  writer_.OnSinkAvailCancel();
  EXPECT_FALSE(writer_.ack_owed());
}

// R5.18
TEST_F(AdvertWriterTest, LeavingPipelinedDropsWhatWasValidatedWithoutRecounting) {
  writer_.OnPayloadPosted();
  Advert(1);
  Advert(1);
  writer_.LeavePipelined();
  EXPECT_EQ(writer_.live(), 0u);
  EXPECT_EQ(writer_.potential_non_discards(), 1u);
}

// R5.20, R5.23
TEST_F(AdvertWriterTest, AdvertsOnTheirWayAreJudgedAgainstTheFrozenCount) {
  writer_.OnPayloadPosted();  // crosses the first advert, which it takes
  writer_.LeavePipelined();   // frozen at 1
  writer_.OnPayloadPosted();  // Combined: arrives behind the ModeChange and counts
  ASSERT_EQ(writer_.potential_non_discards(), 2u);

  EXPECT_EQ(Advert(0, Legality::kIgnored), nullptr);
  EXPECT_EQ(writer_.potential_non_discards(), 1u) << "stale: it was taken";
  EXPECT_EQ(Advert(0, Legality::kIgnored), nullptr);
  EXPECT_EQ(writer_.potential_non_discards(), 1u) << "not stale: it was forgotten";
  EXPECT_EQ(writer_.live(), 0u);
}

// A sink and a source with a wire between them, both doing whatever they may: the two counters
// agree whenever nothing is under way, every byte is where it belongs, and the source never writes
// to an advert that the sink has given up.
class Crossing {
 public:
  explicit Crossing(uint64_t seed) : random_(seed) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) Happen();
    while (!to_source_.empty() || !to_sink_.empty() || writer_.ack_owed() || writer_.in_process()) {
      Answer();
      DeliverToSource();
      DeliverToSink();
      if (::testing::Test::HasFailure()) return;
    }
    if (sink_.outstanding() == 0) {
      EXPECT_EQ(sink_.non_discards(), writer_.potential_non_discards());
    }
  }

 private:
  enum class Kind { kSinkAvail, kCancel, kPayload, kRdmaWrCompl, kAck, kModeChange };
  struct Message {
    Kind kind;
    wire::SinkAvail advert;
    uint32_t bytes = 0;
    uint32_t key = 0;
    uint32_t acknowledged = 0;
  };

  void Happen() {
    switch (random_.Below(8)) {
      case 0:
        Advertise();
        break;
      case 1:
        DeliverToSource();
        break;
      case 2:
        DeliverToSink();
        break;
      case 3:
        SendPayload();
        break;
      case 4:
        if (writer_.room() > 0) writer_.StartWrite({OperationId{1}, 1, 0});
        break;
      case 5:
        Answer();
        break;
      case 6:
        if (random_.Below(4) == 0) sink_.AskCancel();
        if (sink_.cancel_owed()) {
          sink_.OnCancelPosted(++sink_sequence_);
          to_source_.push_back({Kind::kCancel, {}, 0, 0, 0});
        }
        break;
      case 7:
        ChangeMode();
        break;
    }
  }

  void Advertise() {
    if (!sink_.may_offer() || !sink_pipelined_ || sink_.outstanding() == 4) return;
    Actions actions;
    sink_.Offer({OperationId{1}, 100, 0}, key_, actions);
    ASSERT_TRUE(sink_.OnExposed({std::get<Expose>(actions[0]).advert, {key_, 0}}));
    const wire::SinkAvail message = sink_.Message();
    sink_.OnPosted();
    ++key_;
    ++sink_sequence_;
    to_source_.push_back({Kind::kSinkAvail, message, 0, 0, 0});
  }

  void DeliverToSource() {
    if (to_source_.empty()) return;
    const Message message = to_source_.front();
    to_source_.pop_front();
    ++source_received_;
    if (message.kind == Kind::kCancel) {
      writer_.OnSinkAvailCancel();
      return;
    }
    const auto legality = source_pipelined_ ? Legality::kUsable : Legality::kIgnored;
    EXPECT_EQ(writer_.OnSinkAvail(message.advert, legality, 1, 4).violation, nullptr);
  }

  void DeliverToSink() {
    if (to_sink_.empty()) return;
    const Message message = to_sink_.front();
    to_sink_.pop_front();
    Actions actions;
    SinkAdverts::Taken taken;
    switch (message.kind) {
      case Kind::kPayload:
        taken = sink_.OnPayload(1, actions);
        break;
      case Kind::kRdmaWrCompl:
        taken = sink_.OnRdmaWrCompl(message.bytes, message.key, message.bytes, actions);
        EXPECT_TRUE(taken.is_taken);
        EXPECT_EQ(taken.operation_number, message.key) << "written to another advert's memory";
        break;
      case Kind::kAck:
        sink_.OnSinkCancelAck(message.acknowledged, actions);
        break;
      default:
        sink_pipelined_ = message.bytes != 0;
        if (!sink_pipelined_) sink_.DropAll(actions);
        break;
    }
    EXPECT_EQ(taken.violation, nullptr) << taken.violation;
  }

  void SendPayload() {
    if (writer_.ack_owed() || writer_.cancelled()) return;
    Complete();
    writer_.OnPayloadPosted();
    to_sink_.push_back({Kind::kPayload, {}, 1, 0, 0});
  }

  void Complete() {
    if (!writer_.in_process()) return;
    const AdvertWriter::Completion completion = writer_.TakeRdmaWrCompl();
    to_sink_.push_back(
        {Kind::kRdmaWrCompl, {}, completion.message.length, completion.finished_key, 0});
  }

  void Answer() {
    Complete();
    if (!writer_.ack_owed()) return;
    writer_.TakeSinkCancelAck();
    to_sink_.push_back({Kind::kAck, {}, 0, 0, source_received_});
  }

  // Combined only for as long as adverts may still come.
  void ChangeMode() {
    if (source_pipelined_) {
      if (random_.Below(8) != 0) return;
      Complete();
      writer_.LeavePipelined();
      source_pipelined_ = false;
      to_sink_.push_back({Kind::kModeChange, {}, 0, 0, 0});
    } else if (to_sink_.empty() && to_source_.empty()) {  // acknowledged
      source_pipelined_ = true;
      to_sink_.push_back({Kind::kModeChange, {}, 1, 0, 0});
    }
  }

  Random random_;
  SinkAdverts sink_;
  AdvertWriter writer_;
  std::deque<Message> to_source_, to_sink_;
  uint32_t key_ = 1;
  uint32_t sink_sequence_ = 0, source_received_ = 0;
  bool sink_pipelined_ = true, source_pipelined_ = true;
};

// R5.23, R8.2.4, R8.2.6, R8.4.8
TEST(AdvertsOnBothSides, AgreeInEveryCrossingOfPayloadCancelsAndModeChanges) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crossing(seed).Run(200);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace esdp::sdp
