#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/regions.h"
#include "impl/provider/session/operations.h"
#include "impl/provider/transport/buffer_pool.h"
#include "tests/provider/fake_fabric.h"

namespace esdp::provider {
namespace {

using Span = std::span<std::byte>;

TEST(BufferPoolTest, PartsDoNotOverlapAndLieInOneRegistration) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 16 * 1024 + 16}).ok());
  std::vector<Bytes> parts;
  for (uint32_t i = 0; i < 4; ++i) parts.push_back(pool.HeaderSlot(i));
  for (uint32_t i = 0; i < 2; ++i) {
    parts.push_back(pool.WithHeader(i, BufferPool::kHeaderSlotBytes, BufferPool::kSendBufferBytes));
    EXPECT_EQ(pool.SendBuffer(i).data(), parts.back().data() + BufferPool::kHeaderSlotBytes);
  }
  for (uint32_t i = 0; i < 3; ++i) parts.push_back(pool.ReceiveBuffer(i));
  const FakeFabric::Region region = fabric.regions().begin()->second;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_GE(parts[i].data(), region.base);
    EXPECT_LE(parts[i].data() + parts[i].size(), region.base + region.length);
    if (i > 0) {
      EXPECT_GE(parts[i].data(), parts[i - 1].data() + parts[i - 1].size());
    }
  }
  EXPECT_EQ(pool.HeaderSlot(4).data(), pool.HeaderSlot(0).data());
  EXPECT_EQ(fabric.regions().size(), 1u);
  EXPECT_TRUE(pool.HasReceiveBuffer(2));
  EXPECT_FALSE(pool.HasReceiveBuffer(3));
  EXPECT_FALSE(pool.HasSendBuffer(2));
}

TEST(BufferPoolTest, UntouchedPagesAreNotCommitted) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {64, 8, 16, 16 * 1024 + 16}).ok());
  pool.ReceiveBuffer(7)[0] = std::byte{1};
  const FakeFabric::Region region = fabric.regions().begin()->second;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((region.length + page - 1) / page);
  ASSERT_EQ(mincore(region.base, region.length, resident.data()), 0);
  size_t committed = 0;
  for (const unsigned char one : resident) committed += one & 1;
  EXPECT_EQ(committed, 1u);
}

TEST(BufferPoolTest, LargerReceiveBuffersLieApartFromThoseInUseAndReplaceThemOneByOne) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}).ok());
  for (uint32_t i = 0; i < 3; ++i) (void)pool.PostEntry(i, 1040);
  const std::byte* old = pool.ReceiveBuffer(1).data();
  pool.ReceiveBuffer(1)[0] = std::byte{7};
  ASSERT_TRUE(pool.Change(fabric, 3, 4096).ok());
  EXPECT_EQ(fabric.regions().size(), 2u);
  EXPECT_EQ(pool.PostEntry(0, 4096).length, 4096u);

  EXPECT_EQ(pool.ReceiveBuffer(0).size(), 4096u);
  EXPECT_EQ(pool.ReceiveBuffer(1).data(), old) << "its bytes are unread";
  EXPECT_EQ(pool.ReceiveBuffer(1)[0], std::byte{7});
  (void)pool.PostEntry(1, 4096);
  EXPECT_EQ(pool.PostEntry(2, 2000).length, 2000u) << "a decrease stays where it is";
  EXPECT_TRUE(pool.Change(fabric, 3, 8192).ok());
  ASSERT_TRUE(pool.Close(fabric).ok());
  EXPECT_TRUE(fabric.regions().empty());
}

TEST(BufferPoolTest, MoreReceiveBuffersAreThereAfterAChange) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}).ok());
  (void)pool.PostEntry(1, 1040);
  const std::byte* old = pool.ReceiveBuffer(1).data();
  ASSERT_FALSE(pool.HasReceiveBuffer(3));
  ASSERT_TRUE(pool.Change(fabric, 6, 1040).ok());

  EXPECT_TRUE(pool.HasReceiveBuffer(5));
  EXPECT_FALSE(pool.HasReceiveBuffer(6));
  EXPECT_EQ(pool.PostEntry(5, 1040).length, 1040u);
  EXPECT_EQ(pool.ReceiveBuffer(1).data(), old) << "it is in use";
  EXPECT_EQ(pool.newest_bytes(), pool.BytesFor(6, 1040));
  ASSERT_TRUE(pool.Close(fabric).ok());
  EXPECT_TRUE(fabric.regions().empty());
}

TEST(BufferPoolTest, ChangesWaitWhereBuffersOfAllThoseBeforeAreInUse) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 8, 1040}).ok());
  uint32_t buffers = 8;
  uint32_t id = 0;
  (void)pool.PostEntry(id++, 1040);
  while (pool.Change(fabric, ++buffers, 1040).ok()) {
    ASSERT_LT(buffers, 20u);
    (void)pool.PostEntry(id++, 1040);  // stays in use there
  }
  EXPECT_EQ(pool.Change(fabric, buffers, 1040).code(), absl::StatusCode::kFailedPrecondition);
  (void)pool.PostEntry(1, 1040);  // the last of its mapping goes to the newest
  EXPECT_TRUE(pool.Change(fabric, buffers, 1040).ok());
  ASSERT_TRUE(pool.Close(fabric).ok());
}

TEST(BufferPoolTest, AMappingCountsUntilItsLastBufferRetires) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}).ok());
  ASSERT_TRUE(pool.Change(fabric, 5, 1040).ok());
  (void)pool.PostEntry(3, 1040);
  (void)pool.PostEntry(4, 1040);
  ASSERT_TRUE(pool.Change(fabric, 3, 1040).ok());  // those of the start

  EXPECT_EQ(pool.newest_bytes(), 0u);
  EXPECT_EQ(pool.changed_bytes(), pool.BytesFor(5, 1040));
  pool.Retire(3);
  EXPECT_GT(pool.changed_bytes(), 0u);
  pool.Retire(4);
  EXPECT_EQ(pool.changed_bytes(), 0u);
  ASSERT_TRUE(pool.Close(fabric).ok());
}

TEST(BufferPoolTest, WithoutMemoryTheReceiveBuffersStay) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}).ok());
  fabric.Refuse("Register", absl::ResourceExhaustedError("locked memory"));
  EXPECT_FALSE(pool.Change(fabric, 3, 4096).ok());
  EXPECT_EQ(pool.PostEntry(0, 1040).length, 1040u);
  ASSERT_TRUE(pool.Close(fabric).ok());
}

TEST(BufferPoolTest, CloseIsRepeatedWhileTheFabricHoldsTheMemory) {
  FakeFabric fabric;
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1024}).ok());
  fabric.Refuse("Deregister", absl::FailedPreconditionError("in use"));
  EXPECT_EQ(pool.Close(fabric).code(), absl::StatusCode::kFailedPrecondition);
  fabric.Refuse("Deregister", absl::OkStatus());
  EXPECT_TRUE(pool.Close(fabric).ok());
  EXPECT_TRUE(fabric.regions().empty());
}

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
