// Windows that are shown, and reads of them without the peer's help.

#include <sys/mman.h>

#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/local/read_puller.h"
#include "impl/fabric/soft/region_table.h"
#include "tests/fabric/local/channel_pair.h"

namespace esdp::fabric::local {
namespace {

constexpr uint32_t kKey = 0x5eed;
using Outcome = ReadPuller::Outcome;

// The peer is this process: its memory can be read by the same call.
class PullerTest : public ::testing::Test {
 protected:
  PullerTest() : pair_(MakeChannelPair()), process_(pair_[0]->socket()) {
    for (size_t i = 0; i < source_.size(); ++i)
      source_[i] = static_cast<std::byte>(i * 7 + i / 256);
    region_ = *regions_.Register(target_.data(), target_.size(), {.local_write = true});
  }

  WindowTable& shown() { return pair_[1]->windows(); }
  const WindowTable& seen() const { return pair_[0]->peers_windows(); }

  // A read into pieces of the target.
  soft::SendSlot& Post(const std::vector<uint32_t>& lengths, uint64_t address = 0) {
    std::vector<ScatterEntry> entries;
    uint32_t at = 0;
    for (const uint32_t length : lengths) {
      entries.push_back({region_, target_.data() + at, length});
      at += length;
    }
    soft::SendSlot slot;
    slot.opcode = Opcode::kRead;
    slot.remote = {kKey, address};
    sends_.PushBack(slot, entries.data(), static_cast<uint32_t>(entries.size()), regions_);
    return sends_.At(sends_.end() - 1);
  }
  Outcome Pull(const soft::SendSlot& read, size_t budget = 1 << 20) {
    return puller_.Pull(read, sends_.entries(), seen(), process_, budget);
  }
  bool HasCome(size_t from, size_t bytes) const {
    return std::equal(target_.begin(), target_.begin() + static_cast<ptrdiff_t>(bytes),
                      source_.begin() + static_cast<ptrdiff_t>(from));
  }

  std::array<std::unique_ptr<Channel>, 2> pair_;
  PeerProcess process_;
  std::vector<std::byte> source_ = std::vector<std::byte>(300'000);
  std::vector<std::byte> target_ = std::vector<std::byte>(300'000);
  soft::RegionTable regions_;
  RegionId region_ = RegionId::kNone;
  soft::WorkQueue<soft::SendSlot> sends_;
  ReadPuller puller_;
};

TEST_F(PullerTest, WhatIsShownIsReadIntoEveryEntry) {
  ASSERT_TRUE(Show(shown(), kKey, source_.data(), source_.size()));
  EXPECT_EQ(Pull(Post({100, 0, 5000, 1, 70'000}, 1000)), Outcome::kDone);
  EXPECT_TRUE(HasCome(1000, 75'101));
}

TEST_F(PullerTest, MoreEntriesThanTheSystemTakesAtOnceAreReadOneAfterTheOther) {
  ASSERT_TRUE(Show(shown(), kKey, source_.data(), source_.size()));
  EXPECT_EQ(Pull(Post(std::vector<uint32_t>(40, 1001))), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 40 * 1001));
}

TEST_F(PullerTest, NoMoreIsReadAtOnceThanTheBudgetAllows) {
  ASSERT_TRUE(Show(shown(), kKey, source_.data(), source_.size()));
  const soft::SendSlot& read = Post({100'000, 50'000});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  EXPECT_EQ(target_[64'000], std::byte{0});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  EXPECT_EQ(Pull(read, 64'000), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 150'000));
}

TEST_F(PullerTest, WhatIsNotShownIsAskedFor) {
  EXPECT_EQ(Pull(Post({100})), Outcome::kAsk) << "no window";
  ASSERT_TRUE(Show(shown(), kKey, source_.data(), 1000));
  EXPECT_EQ(Pull(Post({1001})), Outcome::kAsk) << "too long";
  EXPECT_EQ(Pull(Post({1}, 1000)), Outcome::kAsk) << "behind it";
  EXPECT_EQ(Pull(Post({10}, ~uint64_t{0} - 4)), Outcome::kAsk) << "before it";
  EXPECT_EQ(Pull(Post({1000})), Outcome::kDone);
  Hide(shown(), kKey);
  EXPECT_EQ(Pull(Post({1000})), Outcome::kAsk) << "withdrawn";
}

TEST_F(PullerTest, AWindowThatIsWithdrawnInTheMiddleIsAskedFor) {
  ASSERT_TRUE(Show(shown(), kKey, source_.data(), source_.size()));
  const soft::SendSlot& read = Post({150'000});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  Hide(shown(), kKey);
  EXPECT_EQ(Pull(read), Outcome::kAsk);
}

TEST_F(PullerTest, AWindowOverMemoryThatIsNotThereIsAskedFor) {
  for (const uint64_t wild : {uint64_t{0}, uint64_t{16}, ~uint64_t{0} - 4096, uint64_t{1} << 63}) {
    ASSERT_TRUE(Show(shown(), kKey, reinterpret_cast<const std::byte*>(wild), ~uint64_t{0}));
    EXPECT_EQ(Pull(Post({5000})), Outcome::kAsk) << wild;
    Hide(shown(), kKey);
  }
  EXPECT_EQ(target_[0], std::byte{0});
}

TEST_F(PullerTest, APeerThatMayNotBeReadIsAsked) {
  ASSERT_TRUE(Show(shown(), kKey, source_.data(), source_.size()));
  process_.ForbidReading();
  EXPECT_EQ(Pull(Post({100})), Outcome::kAsk);
}

TEST_F(PullerTest, SoManyWindowsAreShownAndTheirPlacesAreUsedAgain) {
  for (uint32_t key = 1; key <= kWindowsShown; ++key) {
    EXPECT_TRUE(Show(shown(), key, source_.data(), key));
  }
  EXPECT_FALSE(Show(shown(), 99, source_.data(), 1));
  Hide(shown(), 7);
  EXPECT_TRUE(Show(shown(), 99, source_.data(), 1));
  EXPECT_FALSE(FindShown(seen(), 7).has_value());
  EXPECT_EQ(FindShown(seen(), 8)->length, 8u);
  EXPECT_FALSE(FindShown(seen(), 0).has_value());
}

TEST_F(PullerTest, OnlyTheNonceItselfIsAProof) {
  const Nonce nonce{0x1234567890abcdef, 0xfedcba0987654321};
  EXPECT_FALSE(pair_[0]->IsProved(nonce));
  const auto read = process_.ReadNonce(reinterpret_cast<uint64_t>(&nonce));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, nonce);
  pair_[1]->Prove({nonce[0], nonce[1] + 1});
  EXPECT_FALSE(pair_[0]->IsProved(nonce));
  pair_[1]->Prove(*read);
  EXPECT_TRUE(pair_[0]->IsProved(nonce));
  EXPECT_FALSE(process_.ReadNonce(16).has_value());
}

}  // namespace
}  // namespace esdp::fabric::local
