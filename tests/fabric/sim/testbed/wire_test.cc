#include "impl/fabric/sim/testbed/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/fabric/sim/testbed/numbers.h"

namespace esdp::fabric::sim::testbed {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kQuantum = 4096;
constexpr uint64_t kHeaders = 64;

class WireTest : public ::testing::Test {
 protected:
  void Send(uint64_t flow, uint64_t bytes, const std::string& name) {
    wire_.Send(
        flow, bytes, [this](uint64_t moved) { moved_ += moved; },
        [this, name] {
          arrived_.push_back(name);
          last_ = world_->Now() - begin_;
        });
  }

  std::shared_ptr<World> world_ = *MakeWorld();
  Wire wire_{*world_, RoundNumbers()};
  const Time begin_ = world_->Now();
  std::vector<std::string> arrived_;
  uint64_t moved_ = 0;
  Duration last_{};
};

TEST_F(WireTest, TheSlowerOfTheBusAndTheLinkSaysHowFastAndTheLatencyComesOnTop) {
  Send(1, 1'000'000 - kHeaders, "all");
  world_->RunUntilIdle();
  EXPECT_EQ(last_, std::chrono::microseconds(1000 + 5));
  EXPECT_EQ(moved_, 1'000'000u);
}

TEST_F(WireTest, FlowsTakeTurnsSoThatAShortOneNeedNotWaitForALongOne) {
  Send(1, 10 * kQuantum, "long");
  Send(2, 16, "short");
  world_->RunUntilIdle();
  EXPECT_THAT(arrived_, ElementsAre("short", "long"));
}

TEST_F(WireTest, NothingOvertakesWithinAFlow) {
  Send(1, 10 * kQuantum, "long");
  Send(1, 16, "short");
  world_->RunUntilIdle();
  EXPECT_THAT(arrived_, ElementsAre("long", "short"));
}

}  // namespace
}  // namespace esdp::fabric::sim::testbed
