#include "impl/sdp/common/withdrawals.h"

#include <gtest/gtest.h>

#include <variant>

namespace esdp::sdp {
namespace {

TEST(WithdrawalsTest, EachAdvertGivesItsOperationBackOnceInWhateverOrderTheyEnd) {
  Withdrawals withdrawals;
  Actions actions;
  withdrawals.Ask(AdvertId{3}, 30, false, actions);
  withdrawals.Ask(AdvertId{4}, 40, true, actions);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_FALSE(std::get<Withdraw>(actions[0]).already_invalidated);
  EXPECT_TRUE(std::get<Withdraw>(actions[1]).already_invalidated);

  EXPECT_EQ(withdrawals.OnWithdrawn(AdvertId{4}), 40u);
  EXPECT_EQ(withdrawals.OnWithdrawn(AdvertId{4}), std::nullopt);
  EXPECT_EQ(withdrawals.OnWithdrawn(AdvertId{3}), 30u);
}

TEST(WithdrawalsTest, AQueuePairThatIsGoneGivesAllOfThemBack) {
  Withdrawals withdrawals;
  Actions actions;
  withdrawals.Ask(AdvertId{3}, 30, false, actions);
  withdrawals.Ask(AdvertId{4}, 40, false, actions);
  EXPECT_EQ(withdrawals.TakeNext(), 30u);
  EXPECT_EQ(withdrawals.TakeNext(), 40u);
  EXPECT_EQ(withdrawals.TakeNext(), std::nullopt);
  EXPECT_EQ(withdrawals.OnWithdrawn(AdvertId{3}), std::nullopt);
}

TEST(WithdrawalsTest, WhatIsStillExposedShowsInTheDigest) {
  Withdrawals asked;
  Actions actions;
  asked.Ask(AdvertId{3}, 30, false, actions);
  Digest with, without;
  asked.AddTo(with);
  Withdrawals{}.AddTo(without);
  EXPECT_NE(with.value(), without.value());
}

}  // namespace
}  // namespace esdp::sdp
