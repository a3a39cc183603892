#include <chrono>

#include "gtest/gtest.h"
#include "tests/provider/scripted.h"

namespace esdp::provider {
namespace {

using std::chrono::seconds;

// R2.7.1
TEST_F(ScriptedTest, ReceivesArePostedBeforeTheHelloGoesOut) {
  fabric_->Refuse("Connect", absl::UnavailableError("no device"));
  const auto refused = side_.shard->Connect(Loopback(0), Loopback(5001), {}, kTimeInfinite);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(refused.status().ToString().find("127.0.0.1:5001"), std::string::npos);
  EXPECT_EQ(fabric_->receives_posted(), 16u);
  EXPECT_TRUE(side_.recorder.closed().empty());
  EXPECT_EQ(fabric_->queue_pairs(), 0u);
  EXPECT_TRUE(fabric_->regions().empty());
}

TEST_F(ScriptedTest, TheHelloIsWholeAndTheDeadlinePassedOn) {
  StartConnect();
  wire::Message hello;
  EXPECT_FALSE(wire::DecodeHello(fabric_->private_data(), {}, hello));
  EXPECT_EQ(hello.base.buffers, 16);
  EXPECT_EQ(fabric_->private_data().size(), wire::kHelloBytes);
  EXPECT_EQ(fabric_->last_connect_deadline(), fabric_->Now() + seconds(1));
}

TEST_F(ScriptedTest, WhereAWholeHelloDoesNotFitItsCompactFormGoes) {
  fabric_->mutable_limits().private_data_max = 56;
  StartConnect();
  EXPECT_EQ(fabric_->private_data().size(), 32u);
}

TEST_F(ScriptedTest, RefusedResourcesAreTheStatusOfConnect) {
  fabric_->Refuse("CreateQueuePair", absl::ResourceExhaustedError("too many queue pairs"));
  EXPECT_EQ(side_.shard->Connect(Loopback(0), Loopback(1), {}, kTimeInfinite).status().code(),
            absl::StatusCode::kResourceExhausted);
  fabric_->Refuse("CreateQueuePair", absl::OkStatus());
  fabric_->Refuse("Register", absl::ResourceExhaustedError("RLIMIT_MEMLOCK"));
  EXPECT_EQ(side_.shard->Connect(Loopback(0), Loopback(1), {}, kTimeInfinite).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fabric_->queue_pairs(), 0u);
}

TEST_F(ScriptedTest, AHelloAckThatIsNoneEndsTheConnect) {
  StartConnect();
  RendezvousEvent event = EventOf(RendezvousType::kEstablished);
  event.private_data_bytes = 20;
  fabric_->Raise(event);
  Poll();
  EXPECT_EQ(fabric_->disconnects(), 1);
  EXPECT_TRUE(side_.recorder.closed().empty());  // not before the queue pair has flushed
  fabric_->Raise(EventOf(RendezvousType::kDisconnected, Cause::kLocalDisconnect));
  Poll();
  EXPECT_EQ(Closed().ending, EndReason::kHandshakeRefused);
}

TEST_F(ScriptedTest, ARequestThatIsNoHelloIsRejectedAndLogged) {
  const auto listener = *side_.shard->Listen(Loopback(0), 4, {});
  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = fabric::ListenerId{(*side_.shard->ListenerAddress(listener)).port};
  event.request = fabric::RequestId{5};
  event.private_data_bytes = 92;
  fabric_->Raise(event);
  Poll();
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(fabric_->queue_pairs(), 0u);
  EXPECT_NE(log_.find("no Hello"), std::string::npos) << log_;
}

TEST_F(ScriptedTest, AHalfOpenAcceptThatDiesIsDroppedAndLogged) {
  const auto listener = *side_.shard->Listen(Loopback(0), 4, {});
  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = fabric::ListenerId{(*side_.shard->ListenerAddress(listener)).port};
  event.request = fabric::RequestId{5};
  event.peer = Loopback(4321);
  Put(event, Hello());
  fabric_->Raise(event);
  Poll();
  EXPECT_EQ(fabric_->queue_pairs(), 1u);
  EXPECT_EQ(fabric_->private_data().size(), wire::kHelloAckBytes);
  EXPECT_TRUE(side_.recorder.incoming().empty());
  fabric_->Raise(EventOf(RendezvousType::kConnectFailed, Cause::kPeerReset));
  Poll();
  EXPECT_TRUE(side_.recorder.incoming().empty());
  EXPECT_TRUE(side_.recorder.closed().empty());
  EXPECT_EQ(fabric_->queue_pairs(), 0u);
  EXPECT_NE(log_.find("set-up with 127.0.0.1:4321 failed: the peer broke off"), std::string::npos)
      << log_;
}

TEST_F(ScriptedTest, ARefusedAcceptIsRejected) {
  const auto listener = *side_.shard->Listen(Loopback(0), 4, {});
  fabric_->Refuse("Accept", absl::ResourceExhaustedError("no room"));
  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = fabric::ListenerId{(*side_.shard->ListenerAddress(listener)).port};
  event.request = fabric::RequestId{5};
  Put(event, Hello());
  fabric_->Raise(event);
  Poll();
  EXPECT_EQ(fabric_->rejects(), 1);
  EXPECT_EQ(fabric_->queue_pairs(), 0u);
  EXPECT_TRUE(side_.recorder.incoming().empty());
}

}  // namespace
}  // namespace esdp::provider
