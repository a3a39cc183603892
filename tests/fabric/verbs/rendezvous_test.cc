#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "impl/fabric/port.h"
#include "impl/fabric/socket_address.h"
#include "tests/fabric/loopback.h"
#include "tests/fabric/verbs/fake_system.h"

namespace esdp::fabric::verbs {
namespace {

// An address of this host that nobody else binds to.
Address Here(uint16_t port) {
  Address address = Loopback(port);
  address.bytes[13] = 77;
  return address;
}

// Whether TCP gives the port to a program that wants it for itself.
bool IsFreeInTcp(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SocketAddress system = ToSystem(Here(port));
  const bool is_free = bind(fd, system.pointer(), system.bytes) == 0;
  close(fd);
  return is_free;
}

class RendezvousTest : public FakeSystemTest {
 protected:
  QueuePairId Create() { return *fabric_->CreateQueuePair({}); }
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

TEST_P(RendezvousTest, OnIwarpAPortIsKeptFromTcpUntilTheConnectionHasIt) {
  const uint16_t managers = system_.free_port;
  const QueuePairId id = Create();
  const auto local = fabric_->ReserveAddress(id, Here(0), Loopback(7));
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_EQ(local->port == managers, !IsIwarp());
  if (!IsIwarp()) return;
  EXPECT_FALSE(IsFreeInTcp(local->port));
  ASSERT_TRUE(fabric_->Connect(id, *local, Loopback(7), {}, kTimeInfinite).ok());
  Tell(RDMA_CM_EVENT_ADDR_RESOLVED);
  Tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_FALSE(IsFreeInTcp(local->port));
  Tell(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_TRUE(IsFreeInTcp(local->port));
}

TEST_P(RendezvousTest, OnIwarpAPortThatNobodyChoseIsOneOfTcpToo) {
  const uint16_t managers = system_.free_port;
  ASSERT_TRUE(fabric_->Connect(Create(), {}, Loopback(7), {}, kTimeInfinite).ok());
  const uint16_t port = ntohs(system_.ids.back()->route.addr.src_sin.sin_port);
  EXPECT_EQ(port == managers, !IsIwarp());
  if (!IsIwarp()) return;
  EXPECT_FALSE(IsFreeInTcp(port));
  fabric_.reset();
  EXPECT_TRUE(IsFreeInTcp(port));
}

TEST_P(RendezvousTest, AnotherPortIsTriedWhereTheManagerHasItInUseUnlessItWasAskedFor) {
  system_.bind_errors = 3;
  const auto any = fabric_->ReserveAddress(Create(), Here(0), Loopback(7));
  EXPECT_EQ(any.ok(), IsIwarp()) << any.status();  // else no port of the manager's own is left
  EXPECT_EQ(system_.Count("bind"), IsIwarp() ? 4u : 1u);
  EXPECT_EQ(system_.Count("destroy_id"), IsIwarp() ? 3u : 1u);

  system_.bind_errors = 1;
  EXPECT_TRUE(
      absl::IsAlreadyExists(fabric_->ReserveAddress(Create(), Here(4711), Loopback(7)).status()));
}

// The manager does so where one of the two has the port on all addresses.
TEST_P(RendezvousTest, APortInUseIsNotTakenForAnAddressThatThisHostHasNot) {
  system_.in_use = EADDRNOTAVAIL;
  for (const Address& local : {Here(0), Address{}}) {
    system_.bind_errors = 3;
    EXPECT_EQ(fabric_->ReserveAddress(Create(), local, Loopback(7)).ok(), IsIwarp());
    system_.bind_errors = 0;
    EXPECT_TRUE(fabric_->Connect(Create(), local, Loopback(7), {}, kTimeInfinite).ok());
    system_.bind_errors = 2;
    EXPECT_EQ(fabric_->Listen(local, 1).ok(), IsIwarp());

    Address chosen = local;
    chosen.port = 4711;
    system_.bind_errors = 2;
    EXPECT_TRUE(
        absl::IsAlreadyExists(fabric_->ReserveAddress(Create(), chosen, Loopback(7)).status()));
    EXPECT_TRUE(absl::IsAlreadyExists(fabric_->Listen(chosen, 1).status()));
  }
  Address elsewhere = Here(4711);
  elsewhere.bytes[12] = 192;
  elsewhere.bytes[13] = 0;
  elsewhere.bytes[14] = 2;
  system_.bind_errors = 2;
  EXPECT_TRUE(
      absl::IsInvalidArgument(fabric_->ReserveAddress(Create(), elsewhere, Loopback(7)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(fabric_->Listen(elsewhere, 1).status()));
}

TEST_P(RendezvousTest, OnIwarpAListenerOnAnyPortTriesAnotherWhereTheDeviceCannotHaveIt) {
  system_.listen_errors = 3;
  EXPECT_EQ(fabric_->Listen(Here(0), 1).ok(), IsIwarp());
  EXPECT_EQ(system_.listens.size(), IsIwarp() ? 4u : 1u);
  EXPECT_EQ(system_.Count("destroy_id"), system_.listens.size() - (IsIwarp() ? 1 : 0));

  system_.listen_errors = 1000;
  EXPECT_TRUE(absl::IsAlreadyExists(fabric_->Listen(Here(0), 1).status())) << "not for ever";
  EXPECT_TRUE(absl::IsAlreadyExists(fabric_->Listen(Here(4711), 1).status()));
}

TEST_P(RendezvousTest, OnIwarpTheFirstQueueLiesOverTheKeyThatLibsiwRefuses) {
  (void)Ask(std::chrono::seconds(60));
  constexpr int kBytesOfAnEntry = 32;
  EXPECT_EQ(system_.queue_entries * kBytesOfAnEntry > 0x90000, IsIwarp());
}

}  // namespace
}  // namespace esdp::fabric::verbs
