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

// The turn ends as much later as the packet takes.
TEST_F(WireTest, WhatIsOnePacketGoesBetweenThoseOfATurn) {
  Send(1, kQuantum - kHeaders, "turn");
  Send(2, 1000 - kHeaders, "packet");
  Send(3, 2000 - kHeaders, "another");
  Send(4, 3000 - kHeaders, "two packets");
  const auto both = [this] { return arrived_.size() == 2; };
  EXPECT_TRUE(world_->RunUntil(both, begin_ + std::chrono::nanoseconds(5000 + 1000 + 2000)));
  world_->RunUntilIdle();
  EXPECT_THAT(arrived_, ElementsAre("packet", "another", "turn", "two packets"));
  EXPECT_EQ(last_, std::chrono::nanoseconds(5000 + 1000 + 2000 + kQuantum + 3000));
  EXPECT_EQ(moved_, 1000u + 2000 + kQuantum + 3000);
}

TEST_F(WireTest, NothingOvertakesWithinAFlow) {
  Send(1, 10 * kQuantum, "long");
  Send(1, 16, "short");
  Send(2, 1900, "longer");
  Send(2, 16, "shorter");
  world_->RunUntilIdle();
  EXPECT_THAT(arrived_, ElementsAre("longer", "shorter", "long", "short"));
}

}  // namespace
}  // namespace esdp::fabric::sim::testbed
