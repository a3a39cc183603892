#include "tools/esdp_serve/shares.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace esdp_serve {
namespace {

constexpr uint64_t kChunk = uint64_t{1} << 20;

class SharesTest : public testing::Test {
 protected:
  // Gives every slot there is.
  std::vector<uint32_t> All(Shares& shares) {
    std::vector<uint32_t> given;
    while (const auto client = shares.Next(now_)) given.push_back(*client);
    return given;
  }
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(SharesTest, AClientHasUpToItsNumberOfSlotsAndNoMore) {
  Shares shares({.slots = 64, .slots_per_client = 4});
  for (int i = 0; i < 10; ++i) {
    shares.Want(1, kChunk);
    All(shares);
  }
  EXPECT_EQ(shares.held(1), 4u);
  shares.Return(1, now_);
  EXPECT_EQ(All(shares), std::vector<uint32_t>{1});
}

TEST_F(SharesTest, WhoWantsNothingGetsNothingAndOneWishIsOneSlot) {
  Shares shares({.slots = 4});
  EXPECT_TRUE(All(shares).empty());
  shares.Want(1, 10);
  shares.Want(1, 10);
  EXPECT_EQ(All(shares), std::vector<uint32_t>{1});
  shares.Want(2, 10);
  shares.Forget(2);
  EXPECT_TRUE(All(shares).empty());
}

TEST_F(SharesTest, NoMoreSlotsAreGivenThanThereAre) {
  Shares shares({.slots = 3});
  for (uint32_t client = 1; client <= 5; ++client) shares.Want(client, kChunk);
  EXPECT_EQ(All(shares), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_TRUE(shares.Short());
  shares.Return(2, now_);
  EXPECT_EQ(All(shares), std::vector<uint32_t>{4});
}

// Bytes that each of them got of `slots` turns, where everybody always wants `bytes`.
std::map<uint32_t, uint64_t> Serve(const std::map<uint32_t, uint64_t>& wants, int turns,
                                   std::map<uint32_t, uint32_t> weights = {}) {
  Shares shares({.slots = 4, .slots_per_client = 4});
  std::map<uint32_t, uint64_t> got;
  std::deque<uint32_t> held;
  for (const auto& [client, bytes] : wants) shares.Want(client, bytes, weights[client]);
  for (int i = 0; i < turns; ++i) {
    while (const auto client = shares.Next(absl::UnixEpoch())) {
      got[*client] += wants.at(*client);
      held.push_back(*client);
      shares.Want(*client, wants.at(*client), weights[*client]);
    }
    shares.Return(held.front(), absl::UnixEpoch());
    held.pop_front();
  }
  return got;
}

TEST_F(SharesTest, ThoseWhoWantTheSameGetTheSame) {
  std::map<uint32_t, uint64_t> wants;
  for (uint32_t client = 1; client <= 8; ++client) wants[client] = kChunk;
  for (const auto& [client, bytes] : Serve(wants, 800)) {
    EXPECT_NEAR(static_cast<double>(bytes), 100.0 * kChunk, 2.0 * kChunk) << client;
  }
}

TEST_F(SharesTest, WhoHasMoreSharesGetsSoManyTimesAsMuch) {
  for (const uint64_t bytes : {kChunk, kChunk / 16}) {
    const auto got = Serve({{1, bytes}, {2, bytes}, {3, kChunk}}, 8000, {{1, 1}, {2, 3}, {3, 4}});
    for (const auto& [client, shares] : std::map<uint32_t, double>{{2, 3}, {3, 4}}) {
      const double ratio = static_cast<double>(got.at(client)) / static_cast<double>(got.at(1));
      EXPECT_NEAR(ratio, shares, 0.1 * shares) << client;
    }
  }
}

TEST_F(SharesTest, ManySmallOnesGetAsManyBytesAsFewLargeOnes) {
  const auto got = Serve({{1, kChunk}, {2, kChunk / 16}, {3, kChunk / 4}}, 4000);
  for (const uint32_t client : {2u, 3u}) {
    const double ratio = static_cast<double>(got.at(client)) / static_cast<double>(got.at(1));
    EXPECT_NEAR(ratio, 1, 0.05) << client;
  }
}

TEST_F(SharesTest, WhoDoesNotMoveKeepsItsSlotsAndGetsNoFurtherOnesWhereTheyAreShort) {
  Shares shares({.slots = 6, .slots_per_client = 4});
  for (int i = 0; i < 3; ++i) {
    shares.Want(1, kChunk);
    All(shares);
  }
  for (int i = 0; i < 3; ++i) {
    shares.Want(2, kChunk);
    All(shares);
  }
  ASSERT_TRUE(shares.Short());
  now_ += absl::Seconds(6);
  shares.Want(1, kChunk);
  shares.Want(2, kChunk);
  shares.Return(2, now_);
  EXPECT_EQ(All(shares), std::vector<uint32_t>{2});
  EXPECT_EQ(shares.held(1), 3u);
  EXPECT_EQ(shares.Stalled(absl::Seconds(5), now_), std::vector<uint32_t>{1});
  EXPECT_TRUE(shares.Stalled(absl::Seconds(7), now_).empty());
  shares.Return(1, now_);
  EXPECT_TRUE(shares.Stalled(absl::Seconds(5), now_).empty());
}

TEST_F(SharesTest, AClientThatIsForgottenGivesItsSlotsBackAsTheyEnd) {
  Shares shares({.slots = 2});
  shares.Want(1, kChunk);
  All(shares);
  shares.Forget(1);
  EXPECT_EQ(shares.free_slots(), 1u);
  shares.Return(1, now_);
  EXPECT_EQ(shares.free_slots(), 2u);
  shares.Return(1, now_);
  EXPECT_EQ(shares.free_slots(), 2u);
}

}  // namespace
}  // namespace esdp_serve
