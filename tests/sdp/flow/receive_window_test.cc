#include "impl/sdp/flow/receive_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/sdp/connection.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Solo;

constexpr uint16_t kFirst = 8;
constexpr uint16_t kMost = 64;
constexpr uint32_t kPayload = 1024;

// --- the part ---

class ReceiveWindowTest : public ::testing::Test {
 protected:
  // A turn of this length in which each message brings `bytes`.
  void Turn(Duration length, uint32_t bytes = kPayload) {
    ASSERT_TRUE(window_.awaits_announcement());
    const uint32_t limit = sequence_ + window_.buffers();
    window_.OnAnnounced(kAnnouncement, limit, now_);
    now_ += length;
    while (window_.in_turn()) {
      const uint64_t all = uint64_t{kPayload} * window_.buffers();
      if (heard_) {
        window_.OnAdvert(++sequence_, *heard_, bytes, all, now_);
      } else {
        window_.OnPayload(++sequence_, bytes, all, now_);
      }
    }
  }
  void SetUp() override {
    for (int i = 0; i < kTurnsAtFirst; ++i) Turn(seconds(1));
    ASSERT_FALSE(window_.due());
  }
  // Whether a turn of this length makes it ask for more, which it then gets.
  bool Grows(Duration length, uint32_t bytes = kPayload) {
    Turn(length, bytes);
    if (!window_.due()) return false;
    if (window_.Ask(kMost)) window_.OnAnswered(true);
    return true;
  }

  ReceiveWindow window_{kFirst, kMost};
  Time now_{};
  uint32_t sequence_ = 100;
  static constexpr uint32_t kAnnouncement = 7;
  std::optional<uint32_t>
      heard_;  // adverts come, of a peer that has heard our message of this MSeq
};

TEST_F(ReceiveWindowTest, NeverChangesWhereItMayNot) {
  EXPECT_FALSE(ReceiveWindow(8, 0).adapts());
  EXPECT_FALSE(ReceiveWindow(8, 8).adapts());
  EXPECT_FALSE(ReceiveWindow(8, 0).awaits_announcement());
}

TEST_F(ReceiveWindowTest, DoublesAsLongAsTurnsTakeNoLongerForIt) {
  EXPECT_TRUE(Grows(milliseconds(10)));
  EXPECT_EQ(window_.buffers(), 16);
  EXPECT_TRUE(Grows(milliseconds(10)));
  EXPECT_EQ(window_.buffers(), 32);
  EXPECT_TRUE(Grows(milliseconds(14)));
  EXPECT_EQ(window_.buffers(), kMost);
}

TEST_F(ReceiveWindowTest, StopsWhereTheLinkIsTheLimit) {
  EXPECT_TRUE(Grows(milliseconds(10)));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Grows(milliseconds(20)));
  EXPECT_EQ(window_.buffers(), 16);
}

TEST_F(ReceiveWindowTest, NeverExceedsWhatItMayBe) {
  for (int i = 0; i < 100; ++i) (void)Grows(milliseconds(10));
  EXPECT_EQ(window_.buffers(), kMost);
  EXPECT_FALSE(Grows(milliseconds(10)));
}

TEST_F(ReceiveWindowTest, StaysOnAShortPath) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Grows(microseconds(350)));
}

TEST_F(ReceiveWindowTest, StaysForAdvertsOfAPeerThatIsNeverShortOfCredits) {
  heard_ = kAnnouncement + 1;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Grows(milliseconds(10)));
  heard_ = kAnnouncement;
  EXPECT_TRUE(Grows(milliseconds(10)));
}

// As on a machine that is busy now and then.
TEST_F(ReceiveWindowTest, OneShortTurnTellsThatThePathIsShort) {
  Turn(microseconds(100));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Grows(microseconds(140 + 20 * i)));
}

TEST(FreshReceiveWindowTest, DoesNotTakeTheFirstTurnsForThePath) {
  ReceiveWindow window(kFirst, kMost);
  uint32_t sequence = 0;
  for (int i = 0; i < kTurnsAtFirst; ++i) {
    window.OnAnnounced(1, sequence + kFirst, Time{});
    while (window.in_turn()) {
      window.OnPayload(++sequence, kPayload, kPayload * kFirst, Time{} + milliseconds(10));
    }
    EXPECT_FALSE(window.due());
  }
}

TEST_F(ReceiveWindowTest, LearnsNothingFromASenderThatRests) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Grows(seconds(3)));
  EXPECT_TRUE(Grows(milliseconds(10)));
}

TEST_F(ReceiveWindowTest, StaysForSmallPayload) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Grows(milliseconds(10), kPayload / 3));
}

TEST_F(ReceiveWindowTest, TakesLessWhereThereIsRoomForLess) {
  Turn(milliseconds(10));
  ASSERT_TRUE(window_.Ask(11));
  window_.OnAnswered(true);
  EXPECT_EQ(window_.buffers(), 11);
}

TEST_F(ReceiveWindowTest, AsksForNothingWhereThereIsNoRoom) {
  Turn(milliseconds(10));
  EXPECT_FALSE(window_.Ask(kFirst));
  EXPECT_FALSE(window_.due());
  EXPECT_EQ(window_.buffers(), kFirst);
}

TEST_F(ReceiveWindowTest, RestsAfterARefusal) {
  Turn(milliseconds(10));
  ASSERT_TRUE(window_.Ask(kMost));
  window_.OnAnswered(false);
  EXPECT_EQ(window_.buffers(), kFirst);

  for (int i = 0; i < kTurnsAfterRefusal; ++i) EXPECT_FALSE(Grows(milliseconds(10)));
  EXPECT_TRUE(Grows(milliseconds(10)));
}

TEST_F(ReceiveWindowTest, ForgetsThePathWhenItShrinks) {
  EXPECT_TRUE(Grows(milliseconds(10)));
  EXPECT_FALSE(Grows(milliseconds(50)));
  window_.Shrink();
  ASSERT_TRUE(window_.Ask(0));
  window_.OnAnswered(true);
  EXPECT_EQ(window_.buffers(), kFirst);

  for (int i = 0; i < kTurnsAtFirst; ++i) EXPECT_FALSE(Grows(milliseconds(50)));
  EXPECT_TRUE(Grows(milliseconds(50)));
}

// --- in a connection ---

class WindowedConnectionTest : public ::testing::Test {
 protected:
  static Config Windowed() {
    Config config;
    config.receive_buffers = kFirst;
    config.receive_buffers_max = kMost;
    config.receive_buffer_bytes = kPayload + 16;
    config.receive_buffer_bytes_max = 2 * kPayload + 16;
    config.receive_window_bytes = kMost * config.receive_buffer_bytes;
    return config;
  }
  static AskReceive WaitAll() {
    AskReceive ask;
    ask.wait_all = true;
    return ask;
  }
  void SetUp() override {
    solo_.Establish();
    (void)solo_.Receive(1u << 30, WaitAll());
  }
  uint16_t Posted() const {
    const auto sends = Solo::Of<sdp::Send>(solo_.all());
    return sends.empty() ? kFirst : sends.back().message.base.buffers;
  }
  // The peer sends all that it may, a round trip after it heard so.
  void Stream(int round_trips, Duration round_trip, uint32_t payload = kPayload) {
    for (int i = 0; i < round_trips; ++i) {
      solo_.now += round_trip;
      for (int left = solo_.peer_credits() - 2; left > 0; --left) {
        solo_.Arrive(wire::Data{}, payload);
      }
      ASSERT_NE(solo_.core().phase(), Phase::kAborting);
      solo_.FinishSends();
    }
  }
  void BeIdle() {
    solo_.now += kWindowIdle;
    solo_.Step(TimerFired{Timer::kWindow});
  }

  Solo solo_{Windowed()};
};

TEST_F(WindowedConnectionTest, PostsMoreReceivesOnALongPath) {
  Stream(20, milliseconds(10));

  EXPECT_EQ(Posted(), kMost);
  const auto asked = Solo::Of<PrepareReceives>(solo_.all());
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].buffers, 16);
  EXPECT_EQ(asked[2].buffers, kMost);
  EXPECT_EQ(asked[2].bytes, kPayload + 16);
}

TEST_F(WindowedConnectionTest, StaysForSmallPayload) {
  Stream(60, milliseconds(10), kPayload / 3);
  EXPECT_TRUE(Solo::Of<PrepareReceives>(solo_.all()).empty());
}

TEST_F(WindowedConnectionTest, PostsNoBufferTwice) {
  Stream(20, milliseconds(10));

  std::vector<bool> seen(kMost + kSpareReceiveBuffers);
  for (const PostReceive& post : Solo::Of<PostReceive>(solo_.all())) {
    ASSERT_LT(static_cast<size_t>(post.buffer), seen.size());
    seen[static_cast<size_t>(post.buffer)] = true;
  }
  EXPECT_TRUE(solo_.no_buffer_twice());
  EXPECT_GE(std::count(seen.begin(), seen.end(), true), kMost);
}

TEST_F(WindowedConnectionTest, KeepsItsNumberWhereThereIsNoMemory) {
  solo_.prepares = false;
  Stream(60, milliseconds(10));

  EXPECT_EQ(Posted(), kFirst);
  EXPECT_LE(Solo::Of<PrepareReceives>(solo_.all()).size(), 4u);
}

TEST_F(WindowedConnectionTest, KeepsItsNumberOnAShortPath) {
  Stream(100, microseconds(50));
  EXPECT_TRUE(Solo::Of<PrepareReceives>(solo_.all()).empty());
}

TEST_F(WindowedConnectionTest, ShrinksWhenNothingArrivesForLong) {
  Stream(20, milliseconds(10));
  BeIdle();  // something has arrived since the last look
  EXPECT_TRUE(solo_.Last<PrepareReceives>().empty());
  BeIdle();

  const auto asked = solo_.Last<PrepareReceives>();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].buffers, kFirst);
}

// What the peer was promised it may use; and then no more than at first.
TEST_F(WindowedConnectionTest, KeepsItsPromisesWhenItShrinks) {
  Stream(20, milliseconds(10));
  const int promised = solo_.peer_credits();
  ASSERT_GT(promised, kFirst);
  BeIdle();
  BeIdle();

  EXPECT_EQ(solo_.peer_credits(), promised);
  Stream(6, microseconds(50));
  EXPECT_EQ(solo_.core().phase(), Phase::kEstablished);
  EXPECT_LE(Posted(), kFirst + kSpareReceiveBuffers);
  EXPECT_TRUE(solo_.no_buffer_twice());
}

TEST_F(WindowedConnectionTest, RetiresEachSurplusBufferOnce) {
  Stream(20, milliseconds(10));
  BeIdle();
  BeIdle();
  Stream(6, microseconds(50));

  std::vector<int> retired(kMost + kSpareReceiveBuffers);
  for (const RetireReceive& retire : Solo::Of<RetireReceive>(solo_.all())) {
    ++retired[static_cast<size_t>(retire.buffer)];
  }
  for (size_t i = 0; i < retired.size(); ++i) {
    EXPECT_EQ(retired[i], i < kFirst + kSpareReceiveBuffers ? 0 : 1) << i;
  }
}

TEST_F(WindowedConnectionTest, GrowsAgainAfterItShrank) {
  Stream(20, milliseconds(10));
  BeIdle();
  BeIdle();
  Stream(40, milliseconds(10));

  EXPECT_EQ(Posted(), kMost);
  EXPECT_TRUE(solo_.no_buffer_twice());
}

// A smaller window might not have the buffers that unread bytes are in.
TEST_F(WindowedConnectionTest, DoesNotShrinkOverUnreadBytes) {
  Solo solo(Windowed());
  solo.Establish();
  (void)solo.Receive(400 * kPayload, WaitAll());
  for (int i = 0; i < 400; ++i) {
    solo.now += milliseconds(1);
    solo.Arrive(wire::Data{}, kPayload);
    solo.FinishSends();
  }
  ASSERT_FALSE(Solo::Of<PrepareReceives>(solo.all()).empty());
  const size_t asked = Solo::Of<PrepareReceives>(solo.all()).size();
  solo.Arrive(wire::Data{}, kPayload);  // nobody receives it

  for (int i = 0; i < 4; ++i) {
    solo.now += kWindowIdle;
    solo.Step(TimerFired{Timer::kWindow});
  }
  EXPECT_EQ(Solo::Of<PrepareReceives>(solo.all()).size(), asked);
}

TEST_F(WindowedConnectionTest, LargerBuffersLeaveRoomForFewer) {
  solo_.Arrive(wire::ChRcvBuf{2 * kPayload + 16});
  solo_.FinishSends();
  Stream(2, milliseconds(10));
  Stream(40, milliseconds(10), 2 * kPayload);

  EXPECT_LE(Posted(), kMost / 2 + 1);
  EXPECT_GT(Posted(), kFirst);
}

// A peer that hears our messages one after the other, half a round trip after each has left, and
// then advertises all that it may. We read it at once.
class AdvertisingPeerTest : public ::testing::Test {
 protected:
  static Config Advertised() {
    Config config;
    config.receive_buffers = kFirst;
    config.receive_buffers_max = kMost;
    config.max_adverts = kMost;
    config.receive_window_bytes = uint64_t{kMost} * config.receive_buffer_bytes;
    config.shows_receives = false;  // a SinkAvail of ours would win over them
    return config;
  }
  void SetUp() override {
    Solo::Peer peer;
    peer.max_adverts = kMost;
    solo_.Establish(peer);
    AskReceive large;
    large.wait_all = large.placeable = true;
    large.zcopy_min = kPayload;
    (void)solo_.Receive(1u << 30, large);
    const MessageArrived mode = solo_.Next(wire::ModeChange{false, wire::Mode::kPipelined});
    sequence_ = mode.message.base.sequence;
    limit_ = sequence_ - 1 + kFirst;
    solo_.Step(mode);
  }
  // `most`: of its adverts at a time.
  void Advertise(int round_trips, int most) {
    Send(most);
    for (int i = 0; i < round_trips; ++i) {
      solo_.now += milliseconds(10);
      for (; read_ < Solo::Of<Read>(solo_.all()).size(); ++read_) solo_.Step(ReadFinished{});
      solo_.FinishSends();
      const std::vector<sdp::Send> ours = Solo::Of<sdp::Send>(solo_.all());
      for (; heard_ < ours.size(); ++heard_) {
        const wire::Message& message = ours[heard_].message;
        if (std::holds_alternative<wire::RdmaRdCompl>(message.body)) --out_;
        limit_ = message.base.acknowledged + message.base.buffers;
        acknowledged_ = message.base.sequence;
        Send(most);
      }
    }
    ASSERT_GT(read_, size_t{kMost});
  }
  bool Grew() const { return !Solo::Of<PrepareReceives>(solo_.all()).empty(); }

  Solo solo_{Advertised()};

 private:
  void Send(int most) {
    for (; out_ < most && limit_ - sequence_ >= 2; ++out_) {
      MessageArrived next = solo_.Next(wire::SrcAvail{64 * kPayload, 0x77, 0x4000});
      sequence_ = next.message.base.sequence;
      next.message.base.acknowledged = acknowledged_;
      solo_.Step(next);
    }
  }

  uint32_t sequence_ = 0, limit_ = 0, acknowledged_ = 0;
  int out_ = 0;
  size_t heard_ = 0, read_ = 0;
};

// Each takes a buffer, and stands for more bytes than it.
TEST_F(AdvertisingPeerTest, GetsMoreCreditsOnALongPath) {
  Advertise(60, kMost);
  ASSERT_TRUE(Grew());
  EXPECT_EQ(Solo::Of<PrepareReceives>(solo_.all()).back().buffers, kMost);
}

// It is slow, but not for want of credits.
TEST_F(AdvertisingPeerTest, GetsNoMoreWhereItHasOnlyFewAdvertsAtATime) {
  Advertise(100, kFirst / 4);
  EXPECT_FALSE(Grew());
}

}  // namespace
}  // namespace esdp::sdp
