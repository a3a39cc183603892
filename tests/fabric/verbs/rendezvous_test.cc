#include "gtest/gtest.h"
#include "impl/fabric/port.h"
#include "tests/fabric/verbs/fake_system.h"

namespace esdp::fabric::verbs {
namespace {

class RendezvousTest : public FakeSystemTest {
 protected:
  // Once, and the application hears nothing more.
  void ExpectTakenAway() {
    EXPECT_EQ(system_.Count("destroy_qp"), 1u);
    EXPECT_EQ(system_.Count("destroy_id"), 1u);
    RendezvousEvent none;
    EXPECT_FALSE(fabric_->PollRendezvous(none));
  }
};
ESDP_ON_BOTH_TRANSPORTS(RendezvousTest);

TEST_P(RendezvousTest, WhatThePeerHasNotAnsweredIsTakenAwayWhereThatDoesNotBlock) {
  const QueuePairId id = Ask(std::chrono::seconds(20));
  clock_.Pass(std::chrono::seconds(20));

  const RendezvousEvent failed = Next();
  EXPECT_EQ(failed.type, RendezvousType::kConnectFailed);
  EXPECT_EQ(failed.cause, Cause::kTimedOut);
  EXPECT_TRUE(fabric_->DestroyQueuePair(id).ok());
  EXPECT_EQ(system_.Count("destroy_qp"), IsIwarp() ? 0u : 1u);
  EXPECT_EQ(system_.Count("stop"), IsIwarp() ? 1u : 0u);

  Tell(RDMA_CM_EVENT_UNREACHABLE);
  ExpectTakenAway();
}

TEST_P(RendezvousTest, AQueuePairThatIsDestroyedWhileItConnectsIsTakenAwayWhereThatDoesNotBlock) {
  const QueuePairId id = Ask(std::chrono::seconds(60));
  EXPECT_TRUE(fabric_->DestroyQueuePair(id).ok());
  EXPECT_EQ(system_.Count("destroy_qp"), IsIwarp() ? 0u : 1u);

  Tell(RDMA_CM_EVENT_ESTABLISHED);
  ExpectTakenAway();
}

TEST_P(RendezvousTest, WhatIsKeptGoesWithTheFabric) {
  const QueuePairId id = Ask(std::chrono::seconds(60));
  EXPECT_TRUE(fabric_->DestroyQueuePair(id).ok());
  fabric_.reset();
  EXPECT_EQ(system_.Count("destroy_qp"), 1u);
  EXPECT_EQ(system_.Count("destroy_id"), 1u);
  EXPECT_EQ(system_.asked.back(), "destroy_cq");
}

TEST_P(RendezvousTest, DepthsAreNeverMoreThanEitherReadingOfTheDriverAllows) {
  (void)Ask(std::chrono::seconds(60));
  Tell(RDMA_CM_EVENT_ESTABLISHED, /*initiator_depth=*/5, /*responder_resources=*/2);
  const RendezvousEvent established = Next();
  EXPECT_EQ(established.type, RendezvousType::kEstablished);
  EXPECT_EQ(established.initiator_depth, IsIwarp() ? 2u : 3u);
  EXPECT_EQ(established.responder_resources, 2u);
}

TEST_P(RendezvousTest, AnAddressOfAnotherDeviceIsNotListenedOn) {
  ibv_context other{};
  system_.bound_to = &other;
  Address address;
  address.bytes[12] = 127;
  const auto refused = fabric_->Listen(address, 1);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
  EXPECT_TRUE(system_.listens.empty());
  EXPECT_TRUE(fabric_->Listen({}, 1).ok());  // on all of them: each request tells its device
}

TEST_P(RendezvousTest, OnIwarpTheFirstQueueLiesOverTheKeyThatLibsiwRefuses) {
  (void)Ask(std::chrono::seconds(60));
  constexpr int kBytesOfAnEntry = 32;
  EXPECT_EQ(system_.queue_entries * kBytesOfAnEntry > 0x90000, IsIwarp());
}

}  // namespace
}  // namespace esdp::fabric::verbs
