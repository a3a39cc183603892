// Messages over a stream that is cut, slow, summed or dead.

#include <random>
#include <string>
#include <vector>

#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

constexpr Access kForReading{.remote_read = true};
constexpr Access kForWriting{.remote_write = true};

Octets Pattern(size_t length, uint8_t seed = 1) {
  Octets bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 7 + (i >> 8));
  return bytes;
}

uint32_t SinkTagOf(const RawSegment& request) {
  uint32_t tag = 0;
  for (int i = 0; i < 4; ++i) tag = tag << 8 | request.payload[static_cast<size_t>(i)];
  return tag;
}

class StreamTest : public QpipTest {
 protected:
  // Lets the side under test speak.
  void SayReady() { ASSERT_TRUE(peer_->Send(Frame(Tagged(0, 0, 0, {}), summed_))); }
  void Fill(size_t offset, const Octets& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) memory_[offset + i] = std::byte{bytes[i]};
  }

  // A conversation that has some of everything that a peer may send: two receives and a read of
  // ours are under way, a window is open.
  Octets Conversation() {
    PostReceive(1, 0, 4000);
    PostReceive(2, 4000, 100);
    const uint32_t key = BindWindow(5000, 5000, kForWriting);
    const Octets read = Frame(Untagged({.opcode = 1, .queue = 1},
                                       ReadRequestOf(3, 0, 50, BindWindow(0, 50, kForReading), 0)),
                              summed_);
    return Frame(Untagged({.last = false}, Pattern(1000)), summed_) +
           Frame(Tagged(0, key, 0, Pattern(17, 2), false), summed_) + read +
           Frame(Untagged({.offset = 1000}, Pattern(2999, 3)), summed_) +
           Frame(Tagged(0, key, 17, Pattern(2500, 4)), summed_) + Frame({}, summed_) +
           Frame(Untagged({.opcode = 5, .sequence = 2}, Pattern(99, 5)), summed_);
  }
  void ExpectConversation() {
    const Completion first = NextCompletion();
    EXPECT_EQ(first.work_id, 1u);
    EXPECT_EQ(first.byte_length, 3999u);
    const Completion second = NextCompletion();
    EXPECT_EQ(second.work_id, 2u);
    EXPECT_EQ(second.byte_length, 99u);
    EXPECT_EQ(MemoryAt(0, 4000), Pattern(1000) + Pattern(2999, 3) + Octets{0});
    EXPECT_EQ(MemoryAt(4000, 100), Pattern(99, 5) + Octets{0});
    EXPECT_EQ(MemoryAt(5000, 2518), Pattern(17, 2) + Pattern(2500, 4) + Octets{0});
    const auto response = peer_->ReceiveSegment();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->tag_or_word, 3u);
    EXPECT_EQ(response->payload.size(), 50u);
  }
  void StartSummed(bool summed) {
    summed_ = summed;
    Establish({.flags = static_cast<uint8_t>(summed ? 0x50 : 0x10)});
  }

  bool summed_ = false;
};

TEST_F(StreamTest, ArrivesByteByByte) {
  for (const bool summed : {false, true}) {
    Open({});
    StartSummed(summed);
    for (const uint8_t byte : Conversation()) ASSERT_TRUE(peer_->Send({byte}));
    ExpectConversation();
  }
}

TEST_F(StreamTest, ArrivesCutInTwoAtEveryPlace) {
  StartSummed(true);
  const size_t length = Conversation().size();
  for (size_t cut = 1; cut < length; cut += cut < 1100 ? 1 : 37) {
    SCOPED_TRACE("cut at " + std::to_string(cut));
    Open({});
    StartSummed(true);
    const Octets bytes = Conversation();
    const auto place = bytes.begin() + static_cast<ptrdiff_t>(cut);
    ASSERT_TRUE(peer_->Send(Octets(bytes.begin(), place)));
    for (int i = 0; i < 3; ++i) Pump();
    ASSERT_TRUE(peer_->Send(Octets(place, bytes.end())));
    ExpectConversation();
    if (HasFailure()) return;
  }
}

TEST_F(StreamTest, APeerThatDiesAtAnyByteIsReportedOnce) {
  StartSummed(false);
  const size_t length = Conversation().size();
  for (size_t kept = 0; kept < length; kept += kept < 1100 ? 3 : 101) {
    for (const bool resets : {false, true}) {
      SCOPED_TRACE("died after " + std::to_string(kept) + (resets ? " by reset" : " in order"));
      Open({});
      StartSummed(false);
      const Octets bytes = Conversation();
      ASSERT_TRUE(peer_->Send(Octets(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(kept))));
      resets ? peer_->Reset() : peer_->Close();
      const auto end = NextEvent(RendezvousType::kDisconnected);
      ASSERT_TRUE(end.has_value());
      EXPECT_TRUE(end->cause == Cause::kPeerReset || end->cause == Cause::kPeerDisconnect);
      EXPECT_EQ(completions_.size(), 2u) << "each receive completes or is flushed";
      EXPECT_TRUE(events_.empty());
    }
    if (HasFailure()) return;
  }
  ExpectTheFabricWorks();
}

TEST_F(StreamTest, AnOrderlyEndBetweenFramesIsADisconnect) {
  Establish();
  PostReceive(1, 0, 16);
  ASSERT_TRUE(peer_->Send(Frame(Untagged({}, Text("bye")))));
  peer_->EndWrites();
  EXPECT_EQ(NextCompletion().status, WorkStatus::kSuccess) << "what came before the end counts";
  ExpectEnd(Cause::kPeerDisconnect);
  EXPECT_TRUE(peer_->ReceiveEnd());
}

TEST_F(StreamTest, AWrongSumEndsTheStream) {
  StartSummed(true);
  PostReceive(1, 0, 64);
  Octets frame = Frame(Untagged({}, Text("not what it was")), true);
  frame[25] ^= 1;
  ASSERT_TRUE(peer_->Send(frame));
  ExpectTerminate(0x2002, Cause::kProtocol);
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
}

TEST_F(StreamTest, SumsAreWrittenOnlyWhenThePeerAsksForThem) {
  for (const bool summed : {false, true}) {
    Open({});
    StartSummed(summed);
    EXPECT_EQ((reply_[16] & 0x40) != 0, summed);
    SayReady();
    Fill(0, Pattern(70000));
    ASSERT_TRUE(Post(Opcode::kSend, 1, 0, 70000).ok());
    for (int i = 0; i < 2; ++i) {
      const auto segment = peer_->ReceiveSegment();
      ASSERT_TRUE(segment.has_value());
      EXPECT_EQ(segment->sum_is_right, summed);
    }
  }
}

TEST_F(StreamTest, ALargeMessageGoesInSegmentsThatAddUp) {
  Establish();
  SayReady();
  const Octets content = Pattern(200000);
  Fill(100, content);
  ASSERT_TRUE(Post(Opcode::kSend, 1, 100, content.size()).ok());
  ASSERT_TRUE(Post(Opcode::kWrite, 2, 100, content.size(), {.key = 77, .address = 5}).ok());
  for (const bool write : {false, true}) {
    Octets seen;
    bool last = false;
    while (!last) {
      const auto segment = peer_->ReceiveSegment();
      ASSERT_TRUE(segment.has_value());
      EXPECT_EQ(segment->tagged, write);
      EXPECT_EQ(segment->offset, seen.size() + (write ? 5 : 0));
      EXPECT_EQ(segment->tag_or_word, write ? 77u : 0u);
      EXPECT_EQ(segment->sequence, write ? 0u : 1u) << "every segment carries its message's number";
      seen = seen + segment->payload;
      last = segment->last;
    }
    EXPECT_EQ(seen, content);
  }
}

TEST_F(StreamTest, AMessageInManySegmentsFillsOneReceive) {
  Establish();
  PostReceive(1, 0, 100000);
  const Octets content = Pattern(90001);
  for (size_t at = 0; at < content.size();) {
    const size_t length = std::min<size_t>(1 + at % 5000, content.size() - at);
    const auto begin = content.begin() + static_cast<ptrdiff_t>(at);
    const Octets piece(begin, begin + static_cast<ptrdiff_t>(length));
    const bool last = at + length == content.size();
    ASSERT_TRUE(
        peer_->Send(Frame(Untagged({.offset = static_cast<uint32_t>(at), .last = last}, piece))));
    at += length;
  }
  EXPECT_EQ(NextCompletion().byte_length, content.size());
  EXPECT_EQ(MemoryAt(0, content.size()), content);
}

TEST_F(StreamTest, ReadResponsesInAnyCutFillTheTarget) {
  Establish();
  SayReady();
  for (const size_t piece_bytes : {1u, 100u, 2047u, 2048u, 5000u}) {
    SCOPED_TRACE(piece_bytes);
    ASSERT_TRUE(Post(Opcode::kRead, 7, 300, 5000, {.key = 9, .address = 10}).ok());
    const auto request = peer_->ReceiveSegment();
    ASSERT_TRUE(request.has_value());
    const Octets content = Pattern(5000, static_cast<uint8_t>(piece_bytes));
    const uint32_t sink = SinkTagOf(*request);
    for (size_t at = 0; at < content.size(); at += piece_bytes) {
      const size_t end = std::min(at + piece_bytes, content.size());
      const Octets piece(content.begin() + static_cast<ptrdiff_t>(at),
                         content.begin() + static_cast<ptrdiff_t>(end));
      ASSERT_TRUE(peer_->Send(Frame(Tagged(2, sink, at, piece, end == content.size()))));
    }
    const Completion completion = NextCompletion();
    EXPECT_EQ(completion.status, WorkStatus::kSuccess);
    EXPECT_EQ(MemoryAt(300, 5000), content);
  }
}

// R25.3
TEST_F(StreamTest, ReadsInFlightStayWithinTheDepthThatWasAgreed) {
  Establish();  // The peer's IRD is 4.
  SayReady();
  for (uint64_t id = 1; id <= 6; ++id) ASSERT_TRUE(Post(Opcode::kRead, id, id * 8, 8, {9, 0}).ok());
  std::vector<uint32_t> sinks;
  for (uint32_t i = 1; i <= 4; ++i) {
    const auto request = peer_->ReceiveSegment();
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->sequence, i);
    sinks.push_back(SinkTagOf(*request));
  }
  for (int i = 0; i < 20; ++i) Pump();
  EXPECT_FALSE(peer_->HasMore()) << "a fifth read while four are in flight";
  for (const uint32_t sink : sinks) {
    ASSERT_TRUE(peer_->Send(Frame(Tagged(2, sink, 0, Text("8 bytes.")))));
    if (sink != sinks[0] && sink != sinks[1]) continue;
    const auto request = peer_->ReceiveSegment();
    ASSERT_TRUE(request.has_value()) << "a place is free";
    EXPECT_GT(request->sequence, 4u);
  }
  for (uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(NextCompletion().work_id, id);
}

TEST_F(StreamTest, AReadResponseThatDoesNotFitItsReadEndsTheStream) {
  struct Misfit {
    uint32_t tag_change;
    uint64_t offset;
    size_t length;
    bool last;
    uint16_t reason;
  };
  for (const Misfit& misfit : std::vector<Misfit>{{1, 0, 100, true, 0x1100},
                                                  {0, 1, 99, true, 0x1101},
                                                  {0, 0, 101, true, 0x1101},
                                                  {0, 0, 99, true, 0x02ff}}) {
    SCOPED_TRACE(testing::Message() << misfit.length << " at " << misfit.offset);
    Establish();
    SayReady();
    ASSERT_TRUE(Post(Opcode::kRead, 7, 0, 100, {.key = 9, .address = 10}).ok());
    const auto request = peer_->ReceiveSegment();
    ASSERT_TRUE(request.has_value());
    ASSERT_TRUE(peer_->Send(Frame(Tagged(2, SinkTagOf(*request) + misfit.tag_change, misfit.offset,
                                         Octets(misfit.length, 'x'), misfit.last))));
    const bool access = misfit.reason != 0x02ff;
    ExpectTerminate(misfit.reason, access ? Cause::kLocalAccess : Cause::kProtocol);
    EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
  }
}

TEST_F(StreamTest, APeersTerminateBlamesTheReadItNames) {
  Establish();
  SayReady();
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(Post(Opcode::kRead, id, 0, 8, {9, 0}).ok());
  ASSERT_TRUE(Post(Opcode::kSend, 4, 0, 8).ok());
  ASSERT_TRUE(peer_->ReceiveSegment().has_value());
  const auto second = peer_->ReceiveSegment();
  ASSERT_TRUE(second.has_value());
  const Octets terminate = Octets{0x01, 0x01, 0xe0, 0x00} + Number(46, 2) +
                           Untagged({.opcode = 1, .queue = 1, .sequence = 2}, second->payload);
  ASSERT_TRUE(peer_->Send(Frame(Untagged({.opcode = 7, .queue = 2}, terminate))));

  ExpectEnd(Cause::kRemoteTerminate);

  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
  EXPECT_EQ(NextCompletion().status, WorkStatus::kRemoteAccess);
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed) << "although it had left";
}

TEST_F(StreamTest, ATerminateOfAnyContentEndsTheStreamAndNothingElse) {
  std::mt19937 random(20261121);
  for (int i = 0; i < 50; ++i) {
    Establish();
    Octets payload(random() % 64);
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random());
    ASSERT_TRUE(peer_->Send(Frame(Untagged({.opcode = 7, .queue = 2}, payload))));
    ExpectEnd(Cause::kRemoteTerminate);
  }
}

TEST_F(StreamTest, ARandomByteFlippedAnywhereNeverDoesWorseThanEndTheStream) {
  const uint32_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    Open({});
    StartSummed(i % 2 == 0);
    Octets bytes = Conversation();
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    }
    peer_->Send(bytes);
    peer_->Close();
    ASSERT_TRUE(NextEvent(RendezvousType::kDisconnected).has_value());
    EXPECT_EQ(completions_.size(), 2u);
    EXPECT_EQ(MemoryAt(10000, 100), Octets(100, 0)) << "outside of everything that was shown";
  }
}

TEST_F(StreamTest, AWindowWithdrawnInTheMiddleOfAWriteIsLeftAlone) {
  Establish();
  SayReady();
  const uint32_t key = BindWindow(0, 20000, kForWriting);
  const Octets frame = Frame(Tagged(0, key, 0, Octets(20000, 'x')));
  ASSERT_TRUE(peer_->Send(Octets(frame.begin(), frame.begin() + 10000)));
  ASSERT_TRUE(PumpUntil([&] { return MemoryAt(9000, 1) == Octets{'x'}; }));
  SendWork withdraw;
  withdraw.work_id = 1;
  withdraw.opcode = Opcode::kInvalidate;
  withdraw.invalidate_key = key;
  ASSERT_TRUE(fabric_->PostSend(queue_pair_, {&withdraw, 1}).ok());
  EXPECT_EQ(NextCompletion().status, WorkStatus::kSuccess);
  ASSERT_TRUE(peer_->Send(Octets(frame.begin() + 10000, frame.end())));
  ExpectTerminate(0x1100, Cause::kLocalAccess);
  EXPECT_EQ(MemoryAt(10001, 9000), Octets(9000, 0));
}

}  // namespace
}  // namespace esdp::fabric::qpip
