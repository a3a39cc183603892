#include "impl/provider/transport/buffer_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "gtest/gtest.h"
#include "impl/base/spare_mappings.h"
#include "tests/provider/fake_fabric.h"

namespace esdp::provider {
namespace {

TEST(BufferPoolTest, PartsDoNotOverlapAndLieInOneRegistration) {
  FakeFabric fabric;
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 16 * 1024 + 16}, spares).ok());
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
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {64, 8, 16, 16 * 1024 + 16}, spares).ok());
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
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}, spares).ok());
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

TEST(BufferPoolTest, AllThatIsMappedIsRegisteredWithTheFabricThatItMovesTo) {
  FakeFabric from;
  FakeFabric to;
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(from, {4, 2, 3, 1040}, spares).ok());
  (void)pool.PostEntry(1, 1040);
  ASSERT_TRUE(pool.Change(from, 3, 4096).ok());
  ASSERT_TRUE(pool.Move(from, to).ok());
  EXPECT_EQ(from.regions().size(), 2u);
  EXPECT_EQ(to.regions().size(), 2u);
  const auto lies_in = [&](const fabric::ScatterEntry& entry) {
    const auto regions = to.regions();
    const auto region = regions.find(static_cast<uint64_t>(entry.region));
    return region != regions.end() && entry.address >= region->second.base &&
           entry.address + entry.length <= region->second.base + region->second.length;
  };
  EXPECT_TRUE(lies_in(pool.PostEntry(0, 4096)));
  EXPECT_TRUE(lies_in(pool.Entry(pool.SendBuffer(1))));

  ASSERT_TRUE(pool.Change(to, 3, 8192).ok());
  EXPECT_EQ(to.regions().size(), 3u);
  ASSERT_TRUE(pool.Close(to).ok());
  EXPECT_TRUE(from.regions().empty());
  EXPECT_TRUE(to.regions().empty());
}

TEST(BufferPoolTest, WhereTheOtherFabricRefusesItNothingHasMoved) {
  FakeFabric from;
  FakeFabric to;
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(from, {4, 2, 3, 1040}, spares).ok());
  const fabric::RegionId before = pool.Entry(pool.SendBuffer(0)).region;
  to.Refuse("Register", absl::ResourceExhaustedError("full"));
  EXPECT_FALSE(pool.Move(from, to).ok());
  EXPECT_EQ(pool.Entry(pool.SendBuffer(0)).region, before);
  EXPECT_TRUE(pool.Close(from).ok());
  EXPECT_TRUE(from.regions().empty());
  EXPECT_TRUE(to.regions().empty());
}

TEST(BufferPoolTest, MoreReceiveBuffersAreThereAfterAChange) {
  FakeFabric fabric;
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}, spares).ok());
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
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 8, 1040}, spares).ok());
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
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}, spares).ok());
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
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}, spares).ok());
  fabric.Refuse("Register", absl::ResourceExhaustedError("locked memory"));
  EXPECT_FALSE(pool.Change(fabric, 3, 4096).ok());
  EXPECT_EQ(pool.PostEntry(0, 1040).length, 1040u);
  ASSERT_TRUE(pool.Close(fabric).ok());
}

TEST(BufferPoolTest, CloseIsRepeatedWhileTheFabricHoldsTheMemory) {
  FakeFabric fabric;
  SpareMappings spares{4, size_t{1} << 20};
  BufferPool pool;
  ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1024}, spares).ok());
  fabric.Refuse("Deregister", absl::FailedPreconditionError("in use"));
  EXPECT_EQ(pool.Close(fabric).code(), absl::StatusCode::kFailedPrecondition);
  fabric.Refuse("Deregister", absl::OkStatus());
  EXPECT_TRUE(pool.Close(fabric).ok());
  EXPECT_TRUE(fabric.regions().empty());
}

TEST(BufferPoolTest, WhatOneLeavesIsTheNextOnes) {
  FakeFabric fabric;
  SpareMappings spares{4, size_t{1} << 20};
  const std::byte* before = nullptr;
  for (int i = 0; i < 3; ++i) {
    BufferPool pool;
    ASSERT_TRUE(pool.Open(fabric, {4, 2, 3, 1040}, spares).ok());
    if (i > 0) {
      EXPECT_EQ(pool.HeaderSlot(0).data(), before);
    }
    before = pool.HeaderSlot(0).data();
    ASSERT_TRUE(pool.Close(fabric).ok());
  }
}

}  // namespace
}  // namespace esdp::provider
