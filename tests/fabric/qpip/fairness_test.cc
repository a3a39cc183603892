// Frames that cost their sender no credit: what one peer sends does not keep the fabric from the
// others, and a peer that sends nothing but such frames is sent away.

#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

constexpr Access kForReading{.remote_read = true};
constexpr Access kForWriting{.remote_write = true};
constexpr size_t kEmptyMax = 1024;  // frames in a row that may carry nothing
constexpr size_t kWindowBytes = size_t{128} << 10;
constexpr size_t kMarks = 512;
// What one turn takes at most: its frames, and those of the read that was under way then.
constexpr size_t kFramesPerTurnMax = 4096 + 65536 / 8;
constexpr int kPollsMax = 17;  // where the other trickles; nobody has to wait for longer

Octets EmptyWrite() { return Frame(Tagged(0, 0, 0, {})); }

Octets Times(size_t count, const Octets& bytes) {
  Octets out;
  for (size_t i = 0; i < count; ++i) out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

class FairnessTest : public QpipTest {
 protected:
  // So many of these are borne, in a row, and the next one ends the stream. What carries something
  // starts the count anew.
  void ExpectAFloodToEnd(const Octets& empty) {
    const uint32_t window = BindWindow(kWindowBytes, 16, kForWriting);
    const Octets useful = Frame(Tagged(0, window, 0, Text("x")));
    for (const size_t borne : {size_t{0}, kEmptyMax, kEmptyMax}) {
      memory_[kWindowBytes] = std::byte{0};
      ASSERT_TRUE(peer_->Send(Times(borne, empty) + useful));
      ASSERT_TRUE(PumpUntil([&] { return memory_[kWindowBytes] != std::byte{0}; }));
    }
    ASSERT_TRUE(peer_->Send(Times(kEmptyMax, empty)));
    for (int i = 0; i < 10; ++i) Pump();
    EXPECT_TRUE(events_.empty()) << "too early";
    ASSERT_TRUE(peer_->Send(empty));
    ExpectFloodRefused();
  }
  void ExpectFloodRefused() {
    std::optional<RawSegment> segment = peer_->ReceiveSegment();
    while (segment && segment->opcode != 7) segment = peer_->ReceiveSegment();
    ASSERT_TRUE(segment.has_value()) << "no Terminate came";
    EXPECT_EQ(Octets(segment->payload.begin(), segment->payload.begin() + 2), Number(0x0207, 2));
    const auto end = NextEvent(RendezvousType::kDisconnected);
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->cause, Cause::kProtocol);
    EXPECT_NE(end->detail.find("frames in a row that carried nothing"), std::string::npos)
        << end->detail;
  }
  uint32_t SinkOfOurRead() {
    const auto request = peer_->ReceiveSegment();
    if (!request || request->payload.size() < 4) return 0;
    uint32_t sink = 0;
    for (size_t i = 0; i < 4; ++i) sink = sink << 8 | request->payload[i];
    return sink;
  }
  size_t Written() const {
    size_t count = 0;
    for (size_t i = 0; i < kWindowBytes; ++i) count += memory_[i] != std::byte{0};
    return count;
  }
};

// Says the same again and again, as much at a time as its socket takes.
class Flood {
 public:
  Flood(RawPeer& peer, Octets bytes) : peer_(peer), bytes_(std::move(bytes)) {}

  void Fill() {
    while (true) {
      const size_t gone = peer_.Offer(bytes_, at_);
      if (gone == 0) return;
      at_ = (at_ + gone) % bytes_.size();
    }
  }

 private:
  RawPeer& peer_;
  const Octets bytes_;
  size_t at_ = 0;
};

TEST_F(FairnessTest, AFloodOfFramesWithoutASegmentEndsItsConnection) {
  Establish();
  ExpectAFloodToEnd(Frame({}));
  ExpectTheFabricWorks();
}

TEST_F(FairnessTest, AFloodOfEmptyWritesEndsItsConnection) {
  Establish();
  ExpectAFloodToEnd(EmptyWrite());
  ExpectTheFabricWorks();
}

TEST_F(FairnessTest, AFloodOfEmptyPiecesOfAMessageEndsItsConnection) {
  Establish();
  PostReceive(1, 0, 64);
  ExpectAFloodToEnd(Frame(Untagged({.last = false}, {})));
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
  ExpectTheFabricWorks();
}

TEST_F(FairnessTest, AFloodOfEmptyPiecesOfAReadResponseEndsItsConnection) {
  Establish();
  ASSERT_TRUE(peer_->Send(EmptyWrite()));  // this side may speak now
  ASSERT_TRUE(Post(Opcode::kRead, 1, 0, 64, {.key = 9, .address = 0}).ok());
  const uint32_t sink = SinkOfOurRead();
  ExpectAFloodToEnd(Frame(Tagged(2, sink, 0, {}, false)));
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
  ExpectTheFabricWorks();
}

TEST_F(FairnessTest, AFloodOfReadsOfNothingEndsItsConnection) {
  Establish();
  const uint32_t window = BindWindow(0, 64, kForReading);
  const auto request = [&](uint32_t sequence, uint32_t length) {
    return Frame(Untagged({.opcode = 1, .queue = 1, .sequence = sequence},
                          ReadRequestOf(5, 0, length, window, 0)));
  };
  uint32_t sequence = 0;
  for (size_t i = 0; i < kEmptyMax; ++i) {
    ASSERT_TRUE(peer_->Send(request(++sequence, 0)));
    ASSERT_TRUE(peer_->ReceiveSegment().has_value()) << "read " << i;
  }
  // Who reads something says something.
  for (size_t i = 0; i < 3 * kEmptyMax; ++i) {
    ASSERT_TRUE(peer_->Send(request(++sequence, 1)));
    ASSERT_TRUE(peer_->ReceiveSegment().has_value()) << "read " << i;
  }
  for (size_t i = 0; i < kEmptyMax; ++i) {
    ASSERT_TRUE(peer_->Send(request(++sequence, 0)));
    ASSERT_TRUE(peer_->ReceiveSegment().has_value()) << "read " << i;
  }
  ASSERT_TRUE(peer_->Send(request(++sequence, 0)));
  ExpectFloodRefused();
  ExpectTheFabricWorks();
}

TEST_F(FairnessTest, MessagesWithoutPayloadAreNoFlood) {
  Establish();
  for (uint32_t sequence = 1; sequence <= 3 * kEmptyMax; ++sequence) {
    PostReceive(sequence, 0, 64);
    ASSERT_TRUE(peer_->Send(Frame(Untagged({.sequence = sequence}, {}))));
    const Completion completion = NextCompletion();
    ASSERT_EQ(completion.work_id, sequence);
    ASSERT_EQ(completion.status, WorkStatus::kSuccess);
  }
}

TEST_F(FairnessTest, ATurnTakesABoundedNumberOfFrames) {
  Establish();
  const uint32_t window = BindWindow(0, kWindowBytes, kForWriting);
  Octets bytes;
  for (uint64_t at = 0; at < 60'000; ++at) {
    const Octets frame = Frame(Tagged(0, window, at, {1}));
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  const size_t offered = peer_->Offer(bytes) / 24;
  ASSERT_GT(offered, 2 * kFramesPerTurnMax) << "the socket takes too little for this test";

  size_t before = 0;
  size_t most = 0;
  int polls = 0;
  for (; before < offered && polls < 1000; ++polls) {
    Pump();
    const size_t now = Written();
    most = std::max(most, now - before);
    before = now;
  }

  EXPECT_EQ(before, offered) << "bytes that were left are looked at again";
  EXPECT_LE(most, 2 * kFramesPerTurnMax) << "tried directly and found ready: two turns in a poll";
}

// A look is a system call, which an answer to what was just sent would not be there for.
TEST_F(FairnessTest, WhatIsCompleteComesAloneAndEverySecondPollLooksAllTheSame) {
  Establish();
  PostReceive(1, 0, 64);
  ASSERT_NE(peer_->Offer(Frame(Untagged({.sequence = 1}, Text("ping")))), 0u);
  Pump();  // nothing was complete: it looks
  ASSERT_EQ(completions_.size(), 1u);
  EXPECT_EQ(NextCompletion().work_id, 1u);
  PostReceive(2, 0, 64);
  ASSERT_NE(peer_->Offer(Frame(Untagged({.sequence = 2}, Text("ping")))), 0u);
  for (const uint64_t poll : {uint64_t{1}, uint64_t{2}}) {
    ASSERT_TRUE(Post(Opcode::kSend, 100 + poll, 64, 64).ok());
    Pump();
    ASSERT_EQ(completions_.size(), poll) << "the message with the second poll only";
    EXPECT_EQ(NextCompletion().work_id, 100 + poll);
  }
  EXPECT_EQ(NextCompletion().work_id, 2u);
}

TEST_F(FairnessTest, TheDescriptorTellsOfWhatATurnLeft) {
  Establish();
  const uint32_t window = BindWindow(0, kWindowBytes, kForWriting);
  const Octets frame = Frame(Tagged(0, window, 0, {1}));
  const size_t offered = peer_->Offer(Times(60'000, frame)) / 24;
  ASSERT_GT(offered, 2 * kFramesPerTurnMax);
  Pump();
  pollfd one{fabric_->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&one, 1, 0), 1);
}

// One peer always has more to say, and breaks no rule; the other says something now and then.
TEST_F(FairnessTest, AnHonestPeerIsHeardAfterAFewTurnsOfAnyOther) {
  for (const Octets& empty : {Frame({}), EmptyWrite()}) {
    Open({});
    Establish();
    const std::unique_ptr<RawPeer> flooder = std::move(peer_);
    const uint32_t window = BindWindow(0, kMarks, kForWriting);
    Octets bytes;
    for (uint64_t mark = 0; mark < kMarks; ++mark) {
      bytes = std::move(bytes) + Times(kEmptyMax, empty) + Frame(Tagged(0, window, mark, {1}));
    }
    Flood flood(*flooder, std::move(bytes));
    Establish();
    for (uint32_t ping = 1; ping <= 8; ++ping) {
      // Long enough for the fabric to forget that the honest one was busy.
      for (int i = 0; i < 70; ++i) {
        flood.Fill();
        Pump();
      }
      PostReceive(ping, kWindowBytes, 64);
      std::fill_n(memory_.begin(), kMarks, std::byte{0});
      ASSERT_NE(peer_->Offer(Frame(Untagged({.sequence = ping}, Text("ping")))), 0u);
      for (int polls = 0; polls < kPollsMax && completions_.empty(); ++polls) {
        flood.Fill();
        Pump();
      }
      ASSERT_FALSE(completions_.empty()) << "ping " << ping << " was not heard";
      EXPECT_EQ(NextCompletion().work_id, ping);
      EXPECT_LE(Written() * kEmptyMax, 4 * kFramesPerTurnMax);
    }
    EXPECT_TRUE(events_.empty()) << "a peer within the bound is let be";
    peer_.reset();
  }
}

}  // namespace
}  // namespace esdp::fabric::qpip
