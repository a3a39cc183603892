// Nobody sleeps while there is something for him.

#include <poll.h>

#include <cstdint>
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
  EXPECT_FALSE(two->Arm(false));
  for (int i = 0; i < 10; ++i) PutOne(*one);
  EXPECT_TRUE(IsWoken(*two));
  char words[8];
  EXPECT_EQ(recv(two->socket(), words, sizeof(words), MSG_DONTWAIT), 1);
  EXPECT_FALSE(IsWoken(*two));
}

TEST(WakeTest, ArmTellsOfWhatIsThereAlready) {
  const auto [one, two] = MakeChannelPair();
  PutOne(*one);
  EXPECT_TRUE(two->Arm(false));
  two->Disarm();
  EXPECT_FALSE(two->Arm(true)) << "slots that are left do not count";
  two->Disarm();
  one->TellEnd(EndReason::kClosed, 0);
  EXPECT_TRUE(two->Arm(true)) << "the other end's end does";
}

TEST(WakeTest, WhoWaitsForRoomIsWokenByRoom) {
  const auto [one, two] = MakeChannelPair();
  for (uint32_t i = 0; i < kSlots; ++i) PutOne(*one);
  EXPECT_FALSE(one->writer().Reserve(8).has_value());
  EXPECT_TRUE(one->SetStarved(true));
  EXPECT_FALSE(one->Arm(false));
  ASSERT_TRUE(two->reader().Front().has_value());
  two->reader().Pop();
  two->GiveBack();
  EXPECT_TRUE(IsWoken(*one));
  EXPECT_TRUE(one->writer().Reserve(8).has_value());
}

TEST(WakeTest, TheEndOfTheOtherSocketIsSeen) {
  auto [one, two] = MakeChannelPair();
  EXPECT_TRUE(two->DrainSocket());
  one.reset();
  EXPECT_FALSE(two->DrainSocket());
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
    if (!channel_.is_armed() && channel_.Arm(false)) return channel_.Disarm();
    ++sleeps_;
    ASSERT_TRUE(IsWoken(channel_, kPatience)) << "it sleeps, and there is something for it";
    channel_.Disarm();
    ASSERT_TRUE(channel_.DrainSocket());
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
