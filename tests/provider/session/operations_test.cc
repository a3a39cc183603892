#include "impl/provider/session/operations.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/regions.h"
#include "tests/provider/fake_fabric.h"

namespace esdp::provider {
namespace {

class ResolveTest : public testing::Test {
 protected:
  ResolveTest() : memory_(1000) {
    region_ = *MemoryRegion::Register({&fabric_}, memory_, true, Exposure::kPerOperation);
    pieces_ = {{region_.get(), 500, 100}, {region_.get(), 0, 0}, {region_.get(), 0, 50}};
    transfer_.pieces = pieces_;
    operation_.transfer = &transfer_;
  }
  std::optional<ResolvedRange> At(uint64_t offset, uint32_t length) {
    return Resolve(operation_, {sdp::OperationId{1}, length, offset}, 0);
  }

  FakeFabric fabric_;
  std::vector<std::byte> memory_;
  std::shared_ptr<MemoryRegion> region_;
  std::vector<Piece> pieces_;
  Transfer transfer_;
  Operation operation_;
};

TEST_F(ResolveTest, FindsEachRangeForwardsAndBackwards) {
  EXPECT_EQ(At(0, 100)->entry.address, memory_.data() + 500);
  EXPECT_EQ(At(100, 50)->entry.address, memory_.data());
  EXPECT_EQ(At(149, 1)->entry.address, memory_.data() + 49);
  EXPECT_EQ(At(99, 1)->entry.address, memory_.data() + 599);
  EXPECT_EQ(At(120, 5)->offset, 20u);
}

TEST_F(ResolveTest, RefusesWhatIsNotInOnePiece) {
  EXPECT_FALSE(At(99, 2));
  EXPECT_FALSE(At(150, 1));
  EXPECT_FALSE(At(~uint64_t{0}, 1));
  EXPECT_TRUE(At(149, 1));
}

TEST(OperationTableTest, AStaleNameIsNotFound) {
  OperationTable table;
  const sdp::OperationId first = *table.Insert({});
  ASSERT_NE(table.Find(first), nullptr);
  table.Erase(first);
  EXPECT_EQ(table.Find(first), nullptr);
  const sdp::OperationId second = *table.Insert({});
  EXPECT_NE(first, second);
  EXPECT_EQ(table.Find(first), nullptr);
  table.Erase(first);
  EXPECT_NE(table.Find(second), nullptr);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.Find(sdp::OperationId{0}), nullptr);
}

TEST(OperationTableTest, GenerationsWrapWithoutGivingANameOfZero) {
  OperationTable table;
  for (int i = 0; i < 3000; ++i) {
    const sdp::OperationId id = *table.Insert({});
    ASSERT_NE(id, sdp::OperationId{0});
    ASSERT_NE(table.Find(id), nullptr);
    table.Erase(id);
  }
}

}  // namespace
}  // namespace esdp::provider
