#include "impl/provider/transport/exposure.h"

#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/regions.h"
#include "tests/provider/fake_fabric.h"

namespace esdp::provider {
namespace {

constexpr fabric::QueuePairId kQueuePair{7};
constexpr ExposureId kShown{1};

class ExposureTest : public testing::Test {
 protected:
  ExposureTest() : memory_(10'000) { exposures_.Configure(kQueuePair, false); }

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
  EXPECT_EQ(exposures_.Withdraw(fabric_, kShown), shown->key);
  EXPECT_EQ(exposures_.size(), 1u);
  exposures_.Withdrawn(kShown);
  EXPECT_EQ(exposures_.size(), 0u);
  EXPECT_EQ(exposures_.Withdraw(fabric_, kShown), std::nullopt);
}

TEST_F(ExposureTest, AKeyThatThePeerInvalidatedNeedsNoWithdrawal) {
  const auto shown = Expose(Exposure::kPerOperation, PeerMay::kRead);
  exposures_.Invalidated(shown->key + 1);
  EXPECT_EQ(exposures_.size(), 1u);
  exposures_.Invalidated(shown->key);
  EXPECT_EQ(exposures_.Withdraw(fabric_, kShown), std::nullopt);
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
  EXPECT_EQ(exposures_.Withdraw(fabric_, kShown), std::nullopt);
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
  EXPECT_EQ(exposures_.Withdraw(fabric_, kShown), std::nullopt);
}

// R25.7
TEST_F(ExposureTest, ARegionKeyIsNotShownWhereThePeerMayInvalidateIt) {
  exposures_.Configure(kQueuePair, true);
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
  exposures_.Withdraw(fabric_, kShown);  // its invalidation was flushed
  exposures_.ReleaseAll(fabric_, withdrawn_);
  EXPECT_TRUE(fabric_.windows().empty());
  EXPECT_EQ(withdrawn_, std::vector<ExposureId>{kShown});
  EXPECT_EQ(exposures_.size(), 0u);
}

}  // namespace
}  // namespace esdp::provider
