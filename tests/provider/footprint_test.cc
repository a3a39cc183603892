#include <unistd.h>

#include <cstdio>
#include <vector>

#include "gtest/gtest.h"
#include "tests/provider/shard_pair.h"

// What a connection costs in resident memory. Both ends are in this process, so each connection
// counts as two.

namespace esdp::provider {
namespace {

constexpr int kConnections = 50;
constexpr int kEnds = 2 * kConnections;

uint64_t ResidentBytes() {
  unsigned long total = 0;
  unsigned long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

class FootprintTest : public testing::Test {
 protected:
  FootprintTest()
      : pair_(World::kQpipManual), from_(pair_.client(), 1 << 20), to_(pair_.server(), 1 << 20) {
    pair_.Listen({}, 2 * kConnections);
    EXPECT_TRUE(pair_.Connect());  // whatever is needed once
    Carry();
  }

  void Carry() {
    Job send(from_, true, 0, 1 << 20);
    Job receive(to_, false, 0, 1 << 20);
    send.transfer.path = receive.transfer.path = Path::kCopy;
    receive.transfer.wait_all = true;
    Submit(pair_.server(), pair_.server_connection(), receive);
    Submit(pair_.client(), pair_.client_connection(), send);
    ASSERT_TRUE(pair_.RunUntil([&] {
      return pair_.client().recorder.Find(send.transfer) &&
             pair_.server().recorder.Find(receive.transfer);
    }));
    pair_.client().recorder.Forget();
    pair_.server().recorder.Forget();
  }

  ShardPair pair_;
  Memory from_;
  Memory to_;
};

TEST_F(FootprintTest, AnIdleConnectionStaysBelow64KiBAndAUsedOneBelow512KiB) {
  const uint64_t before = ResidentBytes();
  ASSERT_GT(before, 0u);
  for (int i = 0; i < kConnections; ++i) ASSERT_TRUE(pair_.Connect());
  const uint64_t idle = (ResidentBytes() - before) / kEnds;
  RecordProperty("idle_bytes", std::to_string(idle));
  EXPECT_LE(idle, 64u * 1024);
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(Carry());
  const uint64_t all_idle = ResidentBytes();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair_.Connect());
    ASSERT_NO_FATAL_FAILURE(Carry());
  }
  const uint64_t used = (ResidentBytes() - all_idle) / 20;
  RecordProperty("used_bytes", std::to_string(used));
  EXPECT_LE(used, 512u * 1024);
  std::printf("idle %llu bytes, used %llu bytes for each end\n",
              static_cast<unsigned long long>(idle), static_cast<unsigned long long>(used));
}

}  // namespace
}  // namespace esdp::provider
