#include "impl/provider/transport/exposure.h"

#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/regions.h"
#include "tests/provider/fake_fabric.h"

namespace esdp::provider {
namespace {

constexpr fabric::QueuePairId kQueuePair{7};
constexpr ExposureId kShown{1};
constexpr uint32_t kInvalidationsMax = 2;

class ExposureTest : public testing::Test {
 protected:
  ExposureTest() : memory_(10'000) { exposures_.Configure(kQueuePair, false, kInvalidationsMax); }

  std::optional<fabric::RemoteRange> Expose(Exposure exposure, PeerMay right,
                                            bool local_write = true) {
    region_ = *MemoryRegion::Register({&fabric_}, memory_, local_write, exposure);
    const ResolvedRange range{region_.get(), 100, region_->Entry(0, 100, 50)};
    return exposures_.Expose(fabric_, kShown, range, right);
  }

  FakeFabric fabric_;
  std::vector<std::byte> memory_;
  std::shared_ptr<MemoryRegion> region_;
  Exposures exposures_;
  std::vector<ExposureId> withdrawn_;
};

// R25.5
TEST_F(ExposureTest, PerOperationShowsAWindowOverExactlyTheRangeAndRight) {
  const auto shown = Expose(Exposure::kPerOperation, PeerMay::kRead);
  ASSERT_TRUE(shown);
  const FakeFabric::Window window = fabric_.windows().at(shown->key);
  EXPECT_EQ(window.address, memory_.data() + 100);
  EXPECT_EQ(window.length, 50u);
  EXPECT_EQ(window.queue_pair, kQueuePair);
  EXPECT_TRUE(window.access.remote_read);
  EXPECT_FALSE(window.access.remote_write);
}

TEST_F(ExposureTest, AWindowIsWithdrawnByItsKeyAndForgottenWhenThatIsDone) {
  const auto shown = Expose(Exposure::kPerOperation, PeerMay::kWrite);
  EXPECT_TRUE(exposures_.Withdraw(fabric_, kShown));
  const auto next = exposures_.NextInvalidation();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->id, kShown);
  EXPECT_EQ(next->key, shown->key);
  EXPECT_EQ(exposures_.size(), 1u);
  exposures_.Withdrawn(kShown);
  EXPECT_EQ(exposures_.size(), 0u);
  EXPECT_FALSE(exposures_.Withdraw(fabric_, kShown));
}

TEST_F(ExposureTest, NoMoreAreInvalidatedAtOnceThanThereIsRoomForAndTheOldestComesFirst) {
  // Names begin again behind the last one.
  const std::vector<ExposureId> names = {ExposureId{~0u - 1}, ExposureId{~0u}, ExposureId{0},
                                         ExposureId{1}};
  Expose(Exposure::kPerOperation, PeerMay::kRead);
  exposures_.ReleaseAll(fabric_, withdrawn_);
  const ResolvedRange range{region_.get(), 0, region_->Entry(0, 0, 10)};
  for (const ExposureId name : names) {
    ASSERT_TRUE(exposures_.Expose(fabric_, name, range, PeerMay::kRead));
  }
  for (const size_t i : {3u, 1u, 0u, 2u}) EXPECT_TRUE(exposures_.Withdraw(fabric_, names[i]));
  std::vector<ExposureId> invalidated;
  const auto take = [&] {
    while (const auto next = exposures_.NextInvalidation()) invalidated.push_back(next->id);
    return invalidated.size();
  };
  EXPECT_EQ(take(), kInvalidationsMax);
  EXPECT_EQ(take(), kInvalidationsMax);
  exposures_.Withdrawn(names[0]);
  EXPECT_EQ(take(), kInvalidationsMax + 1);
  exposures_.Withdrawn(names[2]);
  exposures_.Withdrawn(names[1]);
  EXPECT_EQ(take(), names.size());
  EXPECT_EQ(invalidated, names);
}

TEST_F(ExposureTest, WhatWaitsForItsInvalidationIsTakenBackWithTheRest) {
  Expose(Exposure::kPerOperation, PeerMay::kRead);
  EXPECT_TRUE(exposures_.Withdraw(fabric_, kShown));
  exposures_.ReleaseAll(fabric_, withdrawn_);
  EXPECT_EQ(withdrawn_, std::vector<ExposureId>{kShown});
  EXPECT_FALSE(exposures_.NextInvalidation());
}

TEST_F(ExposureTest, AKeyThatThePeerInvalidatedNeedsNoWithdrawal) {
  const auto shown = Expose(Exposure::kPerOperation, PeerMay::kRead);
  exposures_.Invalidated(shown->key + 1);
  EXPECT_EQ(exposures_.size(), 1u);
  exposures_.Invalidated(shown->key);
  EXPECT_FALSE(exposures_.Withdraw(fabric_, kShown));
}

TEST_F(ExposureTest, WithoutWindowsExactlyTheRangeIsRegistered) {
  fabric_.mutable_limits().windows = false;
  const auto shown = Expose(Exposure::kPerOperation, PeerMay::kRead);
  ASSERT_TRUE(shown);
  ASSERT_EQ(fabric_.regions().size(), 2u);
  const FakeFabric::Region registered = fabric_.regions().rbegin()->second;
  EXPECT_EQ(registered.base, memory_.data() + 100);
  EXPECT_EQ(registered.length, 50u);
  EXPECT_TRUE(registered.access.remote_read);
  EXPECT_FALSE(registered.access.remote_write);
  EXPECT_FALSE(exposures_.Withdraw(fabric_, kShown));
  EXPECT_EQ(fabric_.regions().size(), 1u);
}

TEST_F(ExposureTest, WithoutWindowsOrRegistrationsNothingIsShown) {
  region_ = *MemoryRegion::Register({&fabric_}, memory_, true, Exposure::kPerOperation);
  fabric_.mutable_limits().windows = false;
  fabric_.Refuse("Register", absl::ResourceExhaustedError("full"));
  const ResolvedRange range{region_.get(), 0, region_->Entry(0, 0, 50)};
  EXPECT_FALSE(exposures_.Expose(fabric_, kShown, range, PeerMay::kRead));
  EXPECT_EQ(exposures_.size(), 0u);
}

TEST_F(ExposureTest, RegionKeyShowsTheRegionsOwnKeyAtTheRangesAddress) {
  const auto shown = Expose(Exposure::kRegionKey, PeerMay::kRead);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->address, 0x1000u + 100);
  EXPECT_TRUE(fabric_.windows().empty());
  EXPECT_FALSE(exposures_.Withdraw(fabric_, kShown));
}

// R25.7
TEST_F(ExposureTest, ARegionKeyIsNotShownWhereThePeerMayInvalidateIt) {
  exposures_.Configure(kQueuePair, true, kInvalidationsMax);
  const auto shown = Expose(Exposure::kRegionKey, PeerMay::kRead);
  ASSERT_TRUE(shown);
  EXPECT_EQ(fabric_.windows().count(shown->key), 1u);
}

TEST_F(ExposureTest, NoneShowsNothing) {
  EXPECT_FALSE(Expose(Exposure::kNone, PeerMay::kRead));
  EXPECT_TRUE(fabric_.windows().empty());
}

TEST_F(ExposureTest, AReadOnlyRegionIsNotShownForWriting) {
  EXPECT_FALSE(Expose(Exposure::kPerOperation, PeerMay::kWrite, false));
  EXPECT_TRUE(Expose(Exposure::kPerOperation, PeerMay::kRead, false));
}

TEST_F(ExposureTest, TheLossOfTheConnectionTakesEverythingBack) {
  Expose(Exposure::kPerOperation, PeerMay::kRead);
  const ResolvedRange other{region_.get(), 0, region_->Entry(0, 0, 10)};
  ASSERT_TRUE(exposures_.Expose(fabric_, ExposureId{2}, other, PeerMay::kRead));
  EXPECT_TRUE(exposures_.Withdraw(fabric_, kShown));
  EXPECT_TRUE(exposures_.NextInvalidation());  // is flushed
  exposures_.ReleaseAll(fabric_, withdrawn_);
  EXPECT_TRUE(fabric_.windows().empty());
  EXPECT_EQ(withdrawn_, std::vector<ExposureId>{kShown});
  EXPECT_EQ(exposures_.size(), 0u);
}

}  // namespace
}  // namespace esdp::provider
