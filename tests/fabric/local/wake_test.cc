// Nobody sleeps while there is something for him.

#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "impl/base/random.h"
#include "tests/fabric/local/channel_pair.h"

namespace esdp::fabric::local {
namespace {

constexpr int kPatience = 20'000;  // ms

// Whether somebody has woken us.
bool IsWoken(const Channel& channel, int milliseconds = 0) {
  pollfd socket{channel.socket(), POLLIN, 0};
  return poll(&socket, 1, milliseconds) == 1;
}

void PutOne(Channel& channel) {
  ASSERT_TRUE(channel.writer().Reserve(8).has_value());
  channel.writer().Put({}, 8);
  channel.Publish();
}

TEST(WakeTest, WhoIsNotArmedIsNotWoken) {
  const auto [one, two] = MakeChannelPair();
  PutOne(*one);
  EXPECT_FALSE(IsWoken(*two));
}

TEST(WakeTest, WhoIsArmedIsWokenOnce) {
  const auto [one, two] = MakeChannelPair();
  EXPECT_FALSE(two->Arm(false, false));
  for (int i = 0; i < 10; ++i) PutOne(*one);
  EXPECT_TRUE(IsWoken(*two));
  char words[8];
  EXPECT_EQ(recv(two->socket(), words, sizeof(words), MSG_DONTWAIT), 1);
  EXPECT_FALSE(IsWoken(*two));
}

TEST(WakeTest, WhoIsAwakeIsNotToldOfSingleSlotsButWhoSleepsIsWokenAtOnce) {
  const auto [one, two] = MakeChannelPair();
  const auto put = [&writer = one->writer()] {
    ASSERT_TRUE(writer.Reserve(8).has_value());
    writer.Put({}, 8);
  };
  put();
  one->PublishToSleeper();
  EXPECT_TRUE(one->writer().HasUnpublished());
  EXPECT_TRUE(two->reader().Front().has_value()) << "it finds the slot all the same";
  EXPECT_FALSE(two->Arm(/*leaves_slots=*/true, false));
  one->PublishToSleeper();
  EXPECT_FALSE(one->writer().HasUnpublished());
  EXPECT_TRUE(IsWoken(*two));
  put();
  one->PublishToSleeper();
  EXPECT_TRUE(one->writer().HasUnpublished()) << "it has been woken, and need not be again";
}

TEST(WakeTest, ArmTellsOfWhatIsThereAlready) {
  const auto [one, two] = MakeChannelPair();
  PutOne(*one);
  EXPECT_TRUE(two->Arm(false, false));
  two->Disarm();
  EXPECT_FALSE(two->Arm(true, false)) << "slots that are left do not count";
  two->Disarm();
  one->TellEnd(EndReason::kClosed, 0);
  EXPECT_TRUE(two->Arm(true, false)) << "the other end's end does";
}

TEST(WakeTest, WhoWaitsForRoomIsWokenByRoom) {
  const auto [one, two] = MakeChannelPair();
  for (uint32_t i = 0; i < kSlots; ++i) PutOne(*one);
  EXPECT_FALSE(one->writer().Reserve(8).has_value());
  EXPECT_TRUE(one->SetStarved(true));
  EXPECT_FALSE(one->Arm(false, false));
  ASSERT_TRUE(two->reader().Front().has_value());
  two->reader().Pop();
  two->GiveBack();
  EXPECT_TRUE(IsWoken(*one));
  EXPECT_TRUE(one->writer().Reserve(8).has_value());
}

// A file that comes just then would be taken for it, and be lost.
TEST(WakeTest, AWordIsNotLookedForWhereNobodyHasSaidThatThereIsOne) {
  const auto [one, two] = MakeChannelPair();
  EXPECT_FALSE(two->Arm(false, false));
  PutOne(*one);
  EXPECT_TRUE(two->DrainSocket(false));
  EXPECT_TRUE(IsWoken(*two));
  EXPECT_TRUE(two->DrainSocket(true));
  EXPECT_FALSE(IsWoken(*two));
}

TEST(WakeTest, TheEndOfTheOtherSocketIsSeen) {
  auto [one, two] = MakeChannelPair();
  EXPECT_TRUE(two->DrainSocket(true));
  one.reset();
  EXPECT_FALSE(two->DrainSocket(true));
}

// Two channels between the same two fabrics: [0] of each is the sender's end.
class SharedBellTest : public ::testing::Test {
 protected:
  using Pair = std::array<std::unique_ptr<Channel>, 2>;

  void ArmBoth() {
    for (const Pair* pair : {&first_, &second_}) EXPECT_FALSE((*pair)[1]->Arm(false, true));
  }

  std::shared_ptr<SharedBell> bell_ = std::make_shared<SharedBell>();
  Pair first_ = MakeChannelPair(bell_);
  Pair second_ = MakeChannelPair(bell_);
};

TEST_F(SharedBellTest, WhoLooksAtAllIsWokenByOne) {
  ArmBoth();
  PutOne(*first_[0]);
  PutOne(*second_[0]);
  EXPECT_TRUE(IsWoken(*first_[1]));
  EXPECT_FALSE(IsWoken(*second_[1]));
}

TEST_F(SharedBellTest, WhoHasBegunToLookIsWokenOnceMore) {
  ArmBoth();
  PutOne(*first_[0]);
  first_[1]->Disarm();
  PutOne(*second_[0]);
  EXPECT_TRUE(IsWoken(*second_[1]));
}

TEST_F(SharedBellTest, WhatIsNotLookedAtIsWokenByItself) {
  ArmBoth();
  EXPECT_FALSE(second_[1]->Arm(false, false));
  EXPECT_TRUE(second_[1]->is_armed());
  PutOne(*first_[0]);
  PutOne(*second_[0]);
  EXPECT_TRUE(IsWoken(*second_[1]));
}

TEST_F(SharedBellTest, AnEndThatIsOverWakesForNobody) {
  ArmBoth();
  PutOne(*first_[0]);
  first_[1]->TellEnd(EndReason::kClosed, 0);
  PutOne(*second_[0]);
  EXPECT_TRUE(IsWoken(*second_[1]));
}

TEST_F(SharedBellTest, AWordThatCouldNotBeSentWakesForNobody) {
  ArmBoth();
  first_[1].reset();
  PutOne(*first_[0]);
  PutOne(*second_[0]);
  EXPECT_TRUE(IsWoken(*second_[1]));
}

TEST_F(SharedBellTest, AChannelThatIsGoneWakesForNobody) {
  ArmBoth();
  PutOne(*first_[0]);
  first_[0].reset();
  PutOne(*second_[0]);
  EXPECT_TRUE(IsWoken(*second_[1]));
}

TEST(SharedBellsTest, AFabricHasOneBellAsLongAsThereAreChannelsToIt) {
  SharedBells bells;
  std::shared_ptr<SharedBell> bell = bells.Of(10, 1);
  EXPECT_EQ(bells.Of(10, 1), bell);
  EXPECT_NE(bells.Of(10, 2), bell);
  EXPECT_NE(bells.Of(11, 1), bell) << "another process claims to be that fabric";
  std::atomic<uint64_t> armed = 1;
  bell->OnRung(armed, 1);
  bell.reset();
  EXPECT_FALSE(bells.Of(10, 1)->IsRinging()) << "a new one";
}

TEST(SharedBellsTest, WhoIsNotKnownSharesWithNobody) {
  SharedBells bells;
  const std::shared_ptr<SharedBell> bell = bells.Of(0, 1);
  EXPECT_NE(bells.Of(0, 1), bell);
  EXPECT_NE(bells.Of(10, 0), bells.Of(10, 0));
}

// One thread sends on both, as chance has it; the other looks at both, and sleeps until it is woken
// by either, now and then by one of them for itself alone.
class SharedBellStress : public SharedBellTest {
 protected:
  void Send(uint32_t count) {
    Random random(1);
    std::array<uint32_t, 2> sent{};
    for (uint32_t i = 0; i < count; ++i) {
      const size_t which = random.Between(0, 1);
      while (sent[which] - taken_[which] == kSlots) std::this_thread::yield();
      (void)(*pairs_[which])[0]->writer().Refresh();
      PutOne(*(*pairs_[which])[0]);
      ++sent[which];
      if (random.Between(0, 99) == 0) std::this_thread::sleep_for(std::chrono::microseconds(1));
    }
  }
  bool Take() {
    bool any = false;
    for (size_t which = 0; which < 2; ++which) {
      bool moved = false;
      for (; End(which).reader().Front(); moved = true) {
        End(which).reader().Pop();
        End(which).GiveBack();
        ++taken_[which];
      }
      if (moved) End(which).Disarm();
      any = any || moved;
    }
    return any;
  }
  // Whether there is nothing to do.
  bool Arm() {
    bool more = false;
    for (size_t which = 0; which < 2; ++which) {
      more = End(which).Arm(false, random_.Between(0, 9) != 0) || more;
    }
    return !more;
  }
  void Sleep() {
    std::array<pollfd, 2> sockets{{{End(0).socket(), POLLIN, 0}, {End(1).socket(), POLLIN, 0}}};
    ASSERT_GT(poll(sockets.data(), sockets.size(), kPatience), 0)
        << "it sleeps, and there is something for it";
    for (size_t which = 0; which < 2; ++which) {
      if (sockets[which].revents == 0) continue;
      End(which).Disarm();
      ASSERT_TRUE(End(which).DrainSocket(true));
    }
  }
  uint32_t taken() const { return taken_[0] + taken_[1]; }

 private:
  Channel& End(size_t which) { return *(*pairs_[which])[1]; }

  const std::array<Pair*, 2> pairs_{&first_, &second_};
  std::array<std::atomic<uint32_t>, 2> taken_{};
  Random random_{2};
};

TEST_F(SharedBellStress, NoWakeUpIsLost) {
  constexpr uint32_t kCount = 200'000;
  std::thread sending([this] { Send(kCount); });
  uint32_t sleeps = 0;
  while (taken() < kCount && !HasFatalFailure()) {
    if (Take() || !Arm()) continue;
    ++sleeps;
    Sleep();
  }
  sending.join();
  EXPECT_GT(sleeps, 100u);
}

// One end sends, the other takes; both sleep whenever they have nothing to do, and each tries all
// the orders that chance and the scheduler give.
class Sleeper {
 public:
  Sleeper(Channel& channel, uint64_t seed) : channel_(channel), random_(seed) {}

  uint32_t sleeps() const { return sleeps_; }

  void Send(uint32_t count) {
    for (uint32_t i = 0; i < count;) {
      bool starved = false;
      for (uint64_t batch = random_.Between(1, 100); batch > 0 && i < count; --batch, ++i) {
        starved = !channel_.writer().Reserve(8).has_value();
        if (starved) break;
        channel_.writer().Put({.length = i}, 8);
      }
      channel_.Publish();
      if (channel_.SetStarved(starved) && channel_.writer().Refresh()) continue;
      if (starved) Sleep();
    }
  }

  void Take(uint32_t count) {
    for (uint32_t i = 0; i < count;) {
      const uint32_t before = i;
      for (uint64_t batch = random_.Between(1, 100); batch > 0; --batch, ++i) {
        const std::optional<ReceivedSlot> slot = channel_.reader().Front();
        if (!slot) break;
        ASSERT_EQ(slot->header.length, i);
        channel_.reader().Pop();
      }
      if (channel_.reader().HasUntold()) channel_.GiveBack();
      if (i == before) Sleep();
      if (i != before) channel_.Disarm();
    }
  }

 private:
  void Sleep() {
    if (!channel_.is_armed() && channel_.Arm(false, false)) return channel_.Disarm();
    ++sleeps_;
    ASSERT_TRUE(IsWoken(channel_, kPatience)) << "it sleeps, and there is something for it";
    channel_.Disarm();
    ASSERT_TRUE(channel_.DrainSocket(true));
  }

  Channel& channel_;
  Random random_;
  uint32_t sleeps_ = 0;
};

TEST(WakeTest, NoWakeUpIsLost) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto pair = MakeChannelPair();
    constexpr uint32_t kCount = 200'000;
    Sleeper source(*pair[0], seed);
    Sleeper sink(*pair[1], seed + 100);
    std::thread sending([&] { source.Send(kCount); });
    sink.Take(kCount);
    sending.join();
    EXPECT_GT(source.sleeps() + sink.sleeps(), 100u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace esdp::fabric::local
