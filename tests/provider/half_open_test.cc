#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/half_open.h"
#include "tests/provider/incoming.h"

// Strangers who begin to connect and do not go on.

namespace esdp::provider {
namespace {

class HalfOpenTest : public IncomingTest {
 protected:
  static constexpr size_t kMost = 256;
};

TEST_F(HalfOpenTest, TheyDoNotCountAgainstTheBacklog) {
  Listen(1);
  for (int i = 0; i < 10; ++i) (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 0);
  Establish(Request(1));
  EXPECT_EQ(side_.recorder.incoming().size(), 1u);
  (void)Request(1);
  EXPECT_EQ(fabric_->rejects(), 1) << "one that waits to be accepted counts";
}

TEST_F(HalfOpenTest, ThereAreSoManyAndTheOldOnesMakeRoom) {
  Listen(4);
  for (size_t i = 0; i < kMost; ++i) (void)Request(9);
  EXPECT_EQ(fabric_->queue_pairs(), kMost);
  (void)Request(9);
  EXPECT_EQ(fabric_->rejects(), 1) << "all are young, and of one address";
  fabric_->MoveTime(fabric::HalfOpen::kTimeToSpeak);
  Establish(Request(9));
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(fabric_->queue_pairs(), kMost) << "one has gone for it";
  EXPECT_EQ(side_.recorder.incoming().size(), 1u);
  EXPECT_NE(log_.find("has not completed its set-up"), std::string::npos) << log_;
}

TEST_F(HalfOpenTest, OneAddressKeepsNobodyElseOut) {
  Listen(4);
  for (size_t i = 0; i < kMost; ++i) (void)Request(9);
  for (uint8_t host = 1; host < 5; ++host) Establish(Request(host));
  EXPECT_EQ(fabric_->rejects(), 0);
  EXPECT_EQ(side_.recorder.incoming().size(), 4u);
}

TEST_F(HalfOpenTest, ALongerBacklogHasRoomForABurstOfAsMany) {
  Listen(1000);
  std::vector<fabric::QueuePairId> burst;
  for (int i = 0; i < 1000; ++i) burst.push_back(Request(9));
  EXPECT_EQ(fabric_->rejects(), 0);
  for (const fabric::QueuePairId queue_pair : burst) Establish(queue_pair);
  EXPECT_EQ(side_.recorder.incoming().size(), 1000u);
}

TEST_F(HalfOpenTest, WhereDescriptorsRunShortOldOnesGo) {
  Listen(4);
  for (int i = 0; i < 3; ++i) (void)Request(9);
  const auto say_short = [&] {
    RendezvousEvent event;
    event.type = RendezvousType::kShort;
    event.listener = fabric::ListenerId{(*side_.shard->ListenerAddress(listener_)).port};
    fabric_->Raise(event);
    Poll();
  };
  say_short();
  EXPECT_EQ(fabric_->queue_pairs(), 3u) << "they are young";
  fabric_->MoveTime(fabric::HalfOpen::kTimeToSpeak);
  Establish(fabric_->last_queue_pair());
  say_short();
  EXPECT_EQ(fabric_->queue_pairs(), 1u) << "the one that has come about stays";
  EXPECT_TRUE(side_.recorder.closed().empty());
}

TEST_F(HalfOpenTest, OneThatFailsByItselfLeavesItsPlace) {
  Listen(4);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < kMost; ++i) Fail(Request(9));
  }
  EXPECT_EQ(fabric_->rejects(), 0);
  EXPECT_EQ(fabric_->queue_pairs(), 0u);
}

}  // namespace
}  // namespace esdp::provider
