#include "impl/fabric/sim/outbox.h"

#include <poll.h>

#include <array>

#include "gtest/gtest.h"

namespace esdp::fabric::sim {
namespace {

constexpr QueuePairId kOne{1};
constexpr QueuePairId kTwo{2};

class OutboxTest : public ::testing::Test {
 protected:
  void Complete(QueuePairId queue_pair, uint64_t id, Opcode opcode) {
    outbox_.Complete({.queue_pair = queue_pair, .work_id = id, .opcode = opcode});
  }
  void Tell(RendezvousType type, QueuePairId queue_pair) {
    RendezvousEvent event;
    event.type = type;
    event.queue_pair = queue_pair;
    outbox_.Tell(event);
  }
  // 0 when there is none.
  uint64_t TakeCompletion() {
    std::array<Completion, 1> one;
    return outbox_.TakeCompletions(absl::MakeSpan(one)) == 1 ? one[0].work_id : 0;
  }
  bool TakeEvent(RendezvousType type, QueuePairId queue_pair) {
    RendezvousEvent event;
    return outbox_.TakeEvent(event) && event.type == type && event.queue_pair == queue_pair;
  }
  bool NoEvent() {
    RendezvousEvent event;
    return !outbox_.TakeEvent(event);
  }
  bool Readable() const {
    pollfd descriptor{outbox_.fd(), POLLIN, 0};
    return poll(&descriptor, 1, 0) == 1;
  }

  Outbox outbox_;
};

TEST_F(OutboxTest, TheDescriptorIsReadableExactlyWhileThereIsSomething) {
  ASSERT_TRUE(outbox_.ok());
  EXPECT_FALSE(Readable());
  Complete(kOne, 1, Opcode::kSend);
  Complete(kOne, 2, Opcode::kSend);
  EXPECT_TRUE(Readable());
  EXPECT_EQ(TakeCompletion(), 1u);
  EXPECT_TRUE(Readable());
  EXPECT_EQ(TakeCompletion(), 2u);
  EXPECT_FALSE(Readable());

  Tell(RendezvousType::kConnectFailed, kOne);
  EXPECT_TRUE(Readable());
  EXPECT_TRUE(TakeEvent(RendezvousType::kConnectFailed, kOne));
  EXPECT_FALSE(Readable());
}

TEST_F(OutboxTest, ReceivesWaitForEstablishedAndSendsDoNot) {
  Tell(RendezvousType::kEstablished, kOne);
  Complete(kOne, 1, Opcode::kReceive);
  Complete(kOne, 2, Opcode::kSend);
  Complete(kTwo, 3, Opcode::kReceive);
  EXPECT_EQ(TakeCompletion(), 2u);
  EXPECT_EQ(TakeCompletion(), 3u);
  EXPECT_EQ(TakeCompletion(), 0u);

  EXPECT_TRUE(TakeEvent(RendezvousType::kEstablished, kOne));

  EXPECT_TRUE(Readable());
  EXPECT_EQ(TakeCompletion(), 1u);
}

TEST_F(OutboxTest, DisconnectedWaitsForTheCompletionsOfItsQueuePairOnly) {
  Complete(kTwo, 1, Opcode::kSend);
  Complete(kOne, 2, Opcode::kSend);
  Tell(RendezvousType::kDisconnected, kOne);
  Tell(RendezvousType::kConnectFailed, kTwo);
  EXPECT_TRUE(TakeEvent(RendezvousType::kConnectFailed, kTwo));
  EXPECT_TRUE(NoEvent());
  EXPECT_EQ(TakeCompletion(), 1u);
  EXPECT_TRUE(NoEvent());
  EXPECT_EQ(TakeCompletion(), 2u);
  EXPECT_TRUE(Readable());

  EXPECT_TRUE(TakeEvent(RendezvousType::kDisconnected, kOne));
  EXPECT_FALSE(Readable());
}

TEST_F(OutboxTest, AConnectionThatEndedUnseenIsToldInOrder) {
  Tell(RendezvousType::kEstablished, kOne);
  Complete(kOne, 1, Opcode::kReceive);
  Tell(RendezvousType::kDisconnected, kOne);

  EXPECT_EQ(TakeCompletion(), 0u);
  EXPECT_TRUE(TakeEvent(RendezvousType::kEstablished, kOne));
  EXPECT_TRUE(NoEvent());
  EXPECT_EQ(TakeCompletion(), 1u);
  EXPECT_TRUE(TakeEvent(RendezvousType::kDisconnected, kOne));
}

TEST_F(OutboxTest, AForgottenQueuePairLeavesOnlyItsCompletions) {
  Tell(RendezvousType::kEstablished, kOne);
  Tell(RendezvousType::kConnectFailed, kTwo);
  Complete(kOne, 1, Opcode::kReceive);
  Tell(RendezvousType::kDisconnected, kOne);

  outbox_.ForgetQueuePair(kOne);

  EXPECT_EQ(TakeCompletion(), 1u);
  EXPECT_TRUE(TakeEvent(RendezvousType::kConnectFailed, kTwo));
  EXPECT_TRUE(NoEvent());
  EXPECT_FALSE(Readable());
}

TEST_F(OutboxTest, RequestsAreTakenBackOneByOneOrByListener) {
  for (uint64_t i = 1; i <= 3; ++i) {
    RendezvousEvent event;
    event.type = RendezvousType::kConnectRequest;
    event.request = RequestId{i};
    event.listener = ListenerId{i == 3 ? 9u : 8u};
    outbox_.Tell(event);
  }
  outbox_.ForgetRequest(RequestId{1});
  RendezvousEvent event;
  ASSERT_TRUE(outbox_.TakeEvent(event));
  EXPECT_EQ(event.request, RequestId{2});

  outbox_.ForgetListener(ListenerId{9});
  EXPECT_TRUE(NoEvent());
  EXPECT_FALSE(Readable());
}

}  // namespace
}  // namespace esdp::fabric::sim
