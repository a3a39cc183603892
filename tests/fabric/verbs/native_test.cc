#include <endian.h>

#include <cstring>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "impl/fabric/port.h"
#include "tests/fabric/loopback.h"
#include "tests/fabric/verbs/fake_system.h"

// Connection profile A, towards SDP in a kernel. It was never run on InfiniBand.

namespace esdp::fabric::verbs {
namespace {

constexpr uint16_t kPeerPort = 5001;
constexpr uint16_t kPartition = 0xff7f;  // in the order of the network

class NativeDeviceTest : public FakeSystemTest {
 protected:
  absl::StatusOr<std::unique_ptr<Fabric>> OpenNative() {
    return MakeVerbsFabric({.profile = Profile::kNative, .calls = &calls_, .clock = &clock_});
  }
};
ESDP_ON_BOTH_TRANSPORTS(NativeDeviceTest);

TEST_P(NativeDeviceTest, OnlyADeviceWithAPortOfInfiniBandIsOpened) {
  system_.link_layer = IBV_LINK_LAYER_INFINIBAND;
  EXPECT_EQ(OpenNative().ok(), !IsIwarp());
  system_.link_layer = IBV_LINK_LAYER_ETHERNET;
  const absl::Status refused = OpenNative().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
}

class NativeTest : public NativeDeviceTest {
 protected:
  NativeTest() { system_.link_layer = IBV_LINK_LAYER_INFINIBAND; }

  void SetUp() override {
    auto native = OpenNative();
    ASSERT_TRUE(native.ok()) << native.status();
    fabric_ = *std::move(native);
  }
  // The manager knows the way: what it would write down with the address.
  void ResolveAddress() {
    rdma_cm_id& id = *system_.ids.back();
    id.route.addr.src_sin.sin_family = id.route.addr.dst_sin.sin_family = AF_INET;
    rdma_ib_addr& ends = id.route.addr.addr.ibaddr;
    for (uint8_t i = 0; i < 16; ++i) {
      ends.sgid.raw[i] = i;
      ends.dgid.raw[i] = static_cast<uint8_t>(0xf0 + i);
    }
    ends.pkey = kPartition;
    Tell(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  // As the manager fills in an id of InfiniBand's addresses.
  void ResolveService() {
    rdma_cm_id& id = *system_.ids.back();
    id.route.addr.src_addr.sa_family = id.route.addr.dst_addr.sa_family = AF_IB;
    Tell(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  QueuePairId StartConnecting() {
    const QueuePairId id = *fabric_->CreateQueuePair({});
    const auto local = fabric_->ReserveAddress(id, {}, Loopback(kPeerPort));
    EXPECT_TRUE(local.ok()) << local.status();
    local_ = local.value_or(Address{});
    const std::array<std::byte, 92> hello{};
    EXPECT_TRUE(fabric_
                    ->Connect(id, local_, Loopback(kPeerPort), hello,
                              fabric_->Now() + std::chrono::seconds(60))
                    .ok());
    return id;
  }
  static sockaddr_ib ToInfiniBand(const sockaddr_storage& storage) {
    sockaddr_ib address;
    std::memcpy(&address, &storage, sizeof address);
    return address;
  }

  Address local_;
};
INSTANTIATE_TEST_SUITE_P(On, NativeTest, ::testing::Values(IBV_TRANSPORT_IB),
                         [](const auto&) { return "InfiniBand"; });

// R2.6.7
TEST_P(NativeTest, ThePeersServiceIsAskedForByItsIdAtItsGidWithTheWholeHello) {
  EXPECT_EQ(fabric_->limits().private_data_max, 92u);
  (void)StartConnecting();
  EXPECT_EQ(local_.bytes, Loopback(0).bytes) << "the address that leads to the peer";
  EXPECT_NE(local_.port, 0);
  ResolveAddress();
  ASSERT_EQ(system_.ids.size(), 2u);
  EXPECT_EQ(system_.ids.back()->ps, RDMA_PS_IB);
  EXPECT_EQ(system_.Count("destroy_id"), 1u) << "the first has told what it knew";

  ASSERT_EQ(system_.resolved.size(), 2u);
  const sockaddr_ib target = ToInfiniBand(system_.resolved[1].second);
  EXPECT_EQ(target.sib_family, AF_IB);
  EXPECT_EQ(target.sib_pkey, kPartition);
  EXPECT_EQ(target.sib_sid, htobe64(0x0000000000011389));
  EXPECT_EQ(target.sib_sid_mask, ~uint64_t{0});
  EXPECT_EQ(target.sib_addr.sib_raw[0], 0xf0);
  EXPECT_EQ(target.sib_addr.sib_raw[15], 0xff);
  const sockaddr_ib source = ToInfiniBand(system_.resolved[1].first);
  EXPECT_EQ(source.sib_family, AF_IB);
  EXPECT_EQ(source.sib_pkey, kPartition);
  EXPECT_EQ(source.sib_sid, htobe64(local_.port));
  EXPECT_EQ(source.sib_sid_mask, htobe64(0xffff));
  EXPECT_EQ(source.sib_addr.sib_raw[15], 15);

  ResolveService();
  EXPECT_EQ(system_.Count("connect"), 0u);
  Tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(system_.Count("connect"), 1u);
  EXPECT_EQ(system_.private_data.size(), 92u);
  Tell(RDMA_CM_EVENT_ESTABLISHED, 4, 4);
  const RendezvousEvent established = Next();
  EXPECT_EQ(established.type, RendezvousType::kEstablished);
  EXPECT_EQ(established.local, local_);
  EXPECT_EQ(established.peer, Loopback(kPeerPort));
}

TEST_P(NativeTest, AWayThroughAPortOfRoceLeadsNowhere) {
  (void)StartConnecting();
  system_.link_layer = IBV_LINK_LAYER_ETHERNET;  // this port's, on a device that has both
  ResolveAddress();
  const RendezvousEvent failed = Next();
  EXPECT_EQ(failed.type, RendezvousType::kConnectFailed);
  EXPECT_EQ(failed.cause, Cause::kUnreachable);
  EXPECT_NE(failed.detail.find("none of InfiniBand"), std::string::npos) << failed.detail;
  EXPECT_EQ(system_.Count("destroy_id"), system_.ids.size());
}

TEST_P(NativeTest, AnAttemptThatIsGivenUpLeavesNoIdAtAnyStep) {
  for (int steps = 0; steps < 4; ++steps) {
    const QueuePairId id = StartConnecting();
    if (steps > 0) ResolveAddress();
    if (steps > 1) ResolveService();
    if (steps > 2) Tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
    EXPECT_TRUE(fabric_->DestroyQueuePair(id).ok());
    EXPECT_EQ(system_.Count("destroy_id"), system_.ids.size()) << steps;
  }
}

TEST_P(NativeTest, AServiceThatNobodyListensToIsRefused) {
  (void)StartConnecting();
  ResolveAddress();
  ResolveService();
  Tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_cm_event event{};
  event.event = RDMA_CM_EVENT_REJECTED;
  event.status = 8;  // invalid service id
  event.id = system_.ids.back().get();
  system_.events.push_back(event);
  const uint64_t one = 1;
  ASSERT_EQ(write(system_.event_channel.fd, &one, sizeof one), ssize_t{sizeof one});
  EXPECT_EQ(Next().cause, Cause::kRefused);
}

TEST_P(NativeTest, ItDoesNotListen) {
  const absl::Status refused = fabric_->Listen({}, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
}

}  // namespace
}  // namespace esdp::fabric::verbs
