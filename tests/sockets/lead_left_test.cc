#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "tests/sockets/harness.h"

// A call that does not wait leaves the work of the Context's thread to that thread, which would
// stand by in vain otherwise, while nobody does it.

namespace esdp::contract {
namespace {

constexpr int kReads = 5000;

class LeadLeftTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
    near_ = Stream::Of(client_.context, std::move(client_.socket)).value();
    far_ = Stream::Of(server_.context, std::move(server_.socket)).value();
  }
  void TearDown() override {
    near_ = Stream();
    far_ = Stream();
    PairTest::TearDown();
  }
  static bool LedLately(const Side& side) {
    return sockets::ContextAccess::StateOf(side.context)->shard().LedLately();
  }

  Stream near_, far_;
};
INSTANTIATE_TEST_SUITE_P(On, LeadLeftTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

TEST_P(LeadLeftTest, AReadThatDoesNotWaitLeavesTheLead) {
  std::array<std::byte, 64> bytes;
  for (int i = 0; i < kReads; ++i) {
    const auto read = near_.Read(absl::MakeSpan(bytes), {.wait = false});
    ASSERT_EQ(KindOf(read.status()), ErrorKind::kWouldBlock) << read.status();
    ASSERT_FALSE(LedLately(client_)) << "at read " << i;
  }
}

TEST_P(LeadLeftTest, SoDoesOneWhileOthersHaveTheShardWork) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    std::vector<std::byte> bytes(4096);
    while (!over) {
      (void)near_.Write(bytes, {.wait = false});
      (void)far_.Read(absl::MakeSpan(bytes), {.wait = false});
    }
  });
  std::array<std::byte, 64> bytes;
  bool led = false;
  for (int i = 0; i < kReads && !led; ++i) {
    EXPECT_FALSE(near_.Read(absl::MakeSpan(bytes), {.wait = false}).ok());
    led = LedLately(client_) || LedLately(server_);
  }
  over = true;
  other.join();
  EXPECT_FALSE(led);
}

}  // namespace
}  // namespace esdp::contract
