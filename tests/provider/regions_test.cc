#include "impl/provider/regions.h"

#include <cstddef>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "tests/provider/fake_fabric.h"

namespace esdp::provider {
namespace {

using Span = std::span<std::byte>;

TEST(MemoryRegionTest, IsSplitAtTheFabricsLimit) {
  FakeFabric fabric;
  fabric.mutable_limits().region_bytes_max = 1000;
  std::vector<std::byte> memory(2500);
  const auto region = *MemoryRegion::Register({&fabric}, memory, true, Exposure::kPerOperation);
  EXPECT_EQ(region->chunk_count(), 3u);
  EXPECT_EQ(fabric.regions().size(), 3u);
  EXPECT_EQ(region->ContiguousFrom(900, 500), 100u);
  EXPECT_EQ(region->ContiguousFrom(1000, 500), 500u);
  EXPECT_EQ(region->Entry(0, 1500, 10).address, memory.data() + 1500);
  EXPECT_EQ(fabric.regions().at(static_cast<uint64_t>(region->Entry(0, 1500, 10).region)).base,
            memory.data() + 1000);
  EXPECT_TRUE(region->Contains(2500, 0));
  EXPECT_FALSE(region->Contains(2500, 1));
  EXPECT_FALSE(region->Contains(~uint64_t{0}, 2));
  EXPECT_TRUE(region->Deregister({&fabric}).ok());
  EXPECT_TRUE(fabric.regions().empty());
}

TEST(MemoryRegionTest, OnlyARegionKeyGetsRemoteRights) {
  FakeFabric fabric;
  std::vector<std::byte> memory(100);
  for (const Exposure exposure : {Exposure::kPerOperation, Exposure::kNone, Exposure::kRegionKey}) {
    const auto region = *MemoryRegion::Register({&fabric}, memory, true, exposure);
    const fabric::Access access = fabric.regions().rbegin()->second.access;
    EXPECT_TRUE(access.local_write);
    EXPECT_EQ(access.remote_read, exposure == Exposure::kRegionKey);
    EXPECT_EQ(access.remote_write, exposure == Exposure::kRegionKey);
  }
}

TEST(MemoryRegionTest, AFailureInTheMiddleUndoesWhatWasDone) {
  FakeFabric fabric;
  fabric.Refuse("Register", absl::ResourceExhaustedError("RLIMIT_MEMLOCK"));
  std::vector<std::byte> memory(100);
  const auto region = MemoryRegion::Register({&fabric}, memory, true, Exposure::kNone);
  EXPECT_EQ(region.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(region.status().ToString().find("RLIMIT_MEMLOCK"), std::string::npos);
  EXPECT_TRUE(fabric.regions().empty());
  EXPECT_EQ(MemoryRegion::Register({&fabric}, Span(), true, Exposure::kNone).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MemoryRegionTest, StaysWhileOperationsUseIt) {
  FakeFabric fabric;
  std::vector<std::byte> memory(100);
  const auto region = *MemoryRegion::Register({&fabric}, memory, true, Exposure::kNone);
  region->AddOperation();
  EXPECT_EQ(region->Deregister({&fabric}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(region->registered());
  region->RemoveOperation();
  EXPECT_TRUE(region->Deregister({&fabric}).ok());
}

}  // namespace
}  // namespace esdp::provider
