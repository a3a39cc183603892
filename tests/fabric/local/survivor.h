#ifndef ESDP_TESTS_FABRIC_LOCAL_SURVIVOR_H_
#define ESDP_TESTS_FABRIC_LOCAL_SURVIVOR_H_

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "tests/fabric/local/dying_peer.h"

namespace esdp::fabric::local {

// Receives what a peer sends that dies.
class DeathTest : public ::testing::Test {
 protected:
  DeathTest()
      : fabric_(*MakeLocalFabric()), memory_(kReceives * kMessage), written_(kWrites * kWrite) {
    listener_ = *fabric_->Listen(Loopback(), 8);
    address_ = *fabric_->ListenerAddress(listener_);
    region_ = *fabric_->Register(memory_.data(), memory_.size(), {.local_write = true});
    target_ = *fabric_->RegionKey(*fabric_->Register(written_.data(), written_.size(),
                                                     {.local_write = true, .remote_write = true}));
  }

  bool Receive(uint64_t id) {
    const ScatterEntry entry{region_, memory_.data() + id % kReceives * kMessage, kMessage};
    const ReceiveWork receive{id, &entry, 1};
    return fabric_->PostReceive(queue_pair_, {&receive, 1}).ok();
  }

  // Takes one event; false when there was none.
  bool TakeEvent() {
    RendezvousEvent event;
    if (!fabric_->PollRendezvous(event)) return false;
    if (event.type == RendezvousType::kConnectRequest) {
      QueuePairOptions options{.send_work = 8, .receive_work = kReceives};
      options.lend_messages = ++lives_ % 2 == 0;
      queue_pair_ = *fabric_->CreateQueuePair(options);
      for (uint64_t id = 0; id < kReceives; ++id) EXPECT_TRUE(Receive(id));
      EXPECT_TRUE(
          fabric_->Accept(event.request, queue_pair_, std::as_bytes(std::span(&target_, 1))).ok());
    }
    if (event.type == RendezvousType::kDisconnected) cause_ = event.cause;
    return true;
  }

  // What has come, message by message, whole and in order.
  void Take() {
    size_t count = 0;
    ASSERT_NO_FATAL_FAILURE(TakeNow(count));
    if (count == 0) WaitFor(*fabric_);
  }
  void TakeNow(size_t& count) {
    std::array<Completion, 16> completions;
    count = fabric_->Poll(absl::MakeSpan(completions));
    for (size_t i = 0; i < count; ++i) {
      ++completed_;
      if (completions[i].status != WorkStatus::kSuccess) continue;
      ASSERT_EQ(completions[i].work_id, received_);
      ASSERT_EQ(completions[i].byte_length, received_ % 3 == 0 ? 16 : kMessage);
      const std::byte* at = completions[i].lent;
      if (at == nullptr) at = memory_.data() + received_ % kReceives * kMessage;
      ASSERT_NO_FATAL_FAILURE(Compare(at, completions[i].byte_length));
      if (received_ % kWriteEvery == 0) {
        const size_t place = received_ / kWriteEvery % kWrites * kWrite;
        ASSERT_NO_FATAL_FAILURE(Compare(written_.data() + place, kWrite));
      }
      if (Receive(received_ + kReceives)) ++posted_;
      ++received_;
    }
    while (TakeEvent()) {
    }
  }
  void Compare(const std::byte* at, size_t bytes) const {
    for (size_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(at[i], ByteAt(received_, i)) << "byte " << i << " of message " << received_;
    }
  }

  void BeginLife() {
    cause_ = Cause::kNone;
    received_ = completed_ = 0;
    posted_ = kReceives;
  }
  // After the peer's death: what it has sent, and the end.
  void EndLife(pid_t peer) {
    kill(peer, SIGKILL);
    ExitOf(peer);
    while (cause_ == Cause::kNone && queue_pair_ != QueuePairId::kNone) {
      ASSERT_NO_FATAL_FAILURE(Take());
    }
    if (queue_pair_ == QueuePairId::kNone) return;  // it came to nothing
    EXPECT_EQ(completed_, posted_) << "every receive has completed";
    EXPECT_TRUE(fabric_->DestroyQueuePair(queue_pair_).ok());
    queue_pair_ = QueuePairId::kNone;
  }

  static constexpr uint32_t kReceives = 16;

  std::unique_ptr<Fabric> fabric_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> written_;  // by the peer
  RemoteRange target_{};
  ListenerId listener_ = ListenerId::kNone;
  Address address_;
  RegionId region_ = RegionId::kNone;
  QueuePairId queue_pair_ = QueuePairId::kNone;
  Cause cause_ = Cause::kNone;
  uint64_t received_ = 0;
  uint64_t lives_ = 0;
  uint64_t completed_ = 0;
  uint64_t posted_ = kReceives;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_TESTS_FABRIC_LOCAL_SURVIVOR_H_
