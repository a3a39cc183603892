#include <atomic>
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "tests/provider/shard_pair.h"

// Counts every allocation of the program.

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace esdp::provider {
namespace {

constexpr uint64_t kBytes = 128 * 1024;
// Until the receiver has sent its first news of credits. Short, so that what would grow by chance,
// when the machine is busy, has not done so before it counts.
constexpr int kWarmUp = 20;
constexpr int kCounted = 1000;

// One transfer after the other, over and over, on the same objects.
class AllocationTest : public testing::Test {
 protected:
  AllocationTest()
      : pair_(World::kQpipManual), from_(pair_.client(), kBytes), to_(pair_.server(), kBytes) {
    EXPECT_TRUE(pair_.Connect());
    pair_.client().recorder.quiet = pair_.server().recorder.quiet = true;
  }

  bool Repeat(Job& send, Job& receive, int times) {
    for (int i = 0; i < times; ++i) {
      const uint64_t sent = pair_.client().recorder.quiet_finished;
      const uint64_t received = pair_.server().recorder.quiet_finished;
      Submit(pair_.server(), pair_.server_connection(), receive);
      Submit(pair_.client(), pair_.client_connection(), send);
      while (pair_.client().recorder.quiet_finished == sent ||
             pair_.server().recorder.quiet_finished == received) {
        pair_.client().shard->Poll();
        pair_.server().shard->Poll();
        if (!pair_.client().recorder.closed().empty()) return false;
      }
    }
    return true;
  }

  uint64_t AllocationsOf(uint64_t length, Path path, Time deadline = kTimeInfinite) {
    Job send(from_, true, 0, length);
    Job receive(to_, false, 0, length);
    receive.transfer.wait_all = true;
    send.transfer.path = receive.transfer.path = path;
    send.transfer.deadline = receive.transfer.deadline = deadline;
    EXPECT_TRUE(Repeat(send, receive, kWarmUp));
    const uint64_t before = allocations.load();
    EXPECT_TRUE(Repeat(send, receive, kCounted));
    return allocations.load() - before;
  }

  ShardPair pair_;
  Memory from_;
  Memory to_;
};

TEST_F(AllocationTest, TheCounterCounts) {
  const uint64_t before = allocations.load();
  auto one = std::make_unique<Job>(from_, true, 0, 1);
  EXPECT_GE(allocations.load() - before, 2u);
}

TEST_F(AllocationTest, ASmallCopiedTransferAllocatesNothing) {
  EXPECT_EQ(AllocationsOf(64, Path::kCopy), 0u);
}

TEST_F(AllocationTest, ALargeCopiedTransferAllocatesNothing) {
  EXPECT_EQ(AllocationsOf(kBytes, Path::kCopy), 0u);
}

TEST_F(AllocationTest, AZeroCopyTransferAllocatesNothing) {
  EXPECT_EQ(AllocationsOf(kBytes, Path::kZeroCopy), 0u);
}

TEST_F(AllocationTest, ATransferWithADeadlineAllocatesNothing) {
  EXPECT_EQ(AllocationsOf(64, Path::kCopy, pair_.client().shard->Now() + std::chrono::hours(1)),
            0u);
}

}  // namespace
}  // namespace esdp::provider
