// CONTRACT.md, "Memory".

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(MemoryContract);

TEST_P(MemoryContract, LimitsAreUsable) {
  for (const Endpoint* endpoint : {one_.get(), two_.get()}) {
    const Limits& limits = (*endpoint)->limits();
    EXPECT_GE(limits.region_bytes_max, 1u);
    EXPECT_GE(limits.message_bytes_max, 1u);
    EXPECT_GE(limits.scatter_gather_max, 1u);
    EXPECT_GE(limits.read_scatter_gather_max, 1u);
    EXPECT_GE(limits.private_data_max, 36u);
    EXPECT_LE(limits.private_data_max, kPrivateDataMax);
    EXPECT_GE(limits.answer_data_max, 196u);
    EXPECT_LE(limits.answer_data_max, kPrivateDataMax);
    EXPECT_GE(limits.send_work_max, QueuePairOptions{}.send_work);
    EXPECT_GE(limits.receive_work_max, QueuePairOptions{}.receive_work);
    EXPECT_GE(limits.reads_in_flight_max, QueuePairOptions{}.initiator_depth);
    EXPECT_STRNE((*endpoint)->name(), "");
  }
}

TEST_P(MemoryContract, RefusesAnEmptyRegistration) {
  std::byte byte{};

  EXPECT_CODE((*one_)->Register(nullptr, 1, {}).status(), kInvalidArgument);
  EXPECT_CODE((*one_)->Register(&byte, 0, {}).status(), kInvalidArgument);
}

TEST_P(MemoryContract, RefusesARegistrationBeyondTheLimit) {
  std::byte byte{};
  const uint64_t limit = (*one_)->limits().region_bytes_max;
  if (limit < UINT64_MAX) {
    EXPECT_CODE((*one_)->Register(&byte, limit + 1, {}).status(), kOutOfRange);
  }

  auto* near_the_end = reinterpret_cast<std::byte*>(UINTPTR_MAX - 15);
  EXPECT_CODE((*one_)->Register(near_the_end, 64, {}).status(), kOutOfRange);
}

TEST_P(MemoryContract, TheSameBytesMayBeRegisteredTwice) {
  const Link link = Connect();
  Memory memory(*two_, 256);
  memory.Fill(1);
  const absl::StatusOr<RegionId> again = (*two_)->Register(memory.at(100), 156, kAllRights);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(*again, memory.region());

  const absl::StatusOr<RemoteRange> key = (*two_)->RegionKey(*again);
  ASSERT_TRUE(key.ok()) << key.status();
  ASSERT_POSTED((*two_)->Deregister(memory.region()));

  ExpectReadAllowed(link, *key, memory.Copy(100, 156));
}

TEST_P(MemoryContract, StaleHandlesAreNotFound) {
  Memory memory(*one_, 64);
  ASSERT_POSTED((*one_)->Deregister(memory.region()));
  const QueuePairId dead = Create(*one_);
  ASSERT_POSTED((*one_)->DestroyQueuePair(dead));
  const absl::StatusOr<ListenerId> listener = (*one_)->Listen(GetParam().host, 8);
  ASSERT_TRUE(listener.ok());
  ASSERT_POSTED((*one_)->StopListening(*listener));
  Memory newer(*one_, 64);
  const QueuePairId alive = Create(*one_);
  const Address anywhere = Listening();

  EXPECT_CODE((*one_)->Deregister(memory.region()), kNotFound);
  EXPECT_CODE((*one_)->RegionKey(memory.region()).status(), kNotFound);
  EXPECT_CODE(one_->Receive(alive, 1, {memory.All()}), kNotFound);
  EXPECT_CODE((*one_)->DestroyQueuePair(dead), kNotFound);
  EXPECT_CODE(one_->Send(dead, 1, {newer.All()}), kNotFound);
  EXPECT_CODE(one_->Receive(dead, 1, {newer.All()}), kNotFound);
  EXPECT_CODE((*one_)->Disconnect(dead, true), kNotFound);
  EXPECT_CODE((*one_)->Connect(dead, {}, anywhere, {}, kTimeInfinite), kNotFound);
  EXPECT_CODE((*one_)->StopListening(*listener), kNotFound);
  EXPECT_CODE((*one_)->ListenerAddress(*listener).status(), kNotFound);
  EXPECT_CODE((*one_)->Accept(RequestId{12345}, alive, {}), kNotFound);
  EXPECT_CODE((*one_)->Reject(RequestId{12345}, {}), kNotFound);
  EXPECT_CODE((*one_)->Deregister(RegionId::kNone), kNotFound);
  EXPECT_CODE((*one_)->DestroyQueuePair(QueuePairId::kNone), kNotFound);
  EXPECT_CODE((*one_)->StopListening(ListenerId::kNone), kNotFound);
  if ((*one_)->limits().windows) {
    EXPECT_CODE((*one_)->Bind(dead, newer.region(), newer.at(0), 1, {}).status(), kNotFound);
    EXPECT_CODE((*one_)->Unbind(dead, 1), kNotFound);
  }
}

TEST_P(MemoryContract, DeregisterIsRefusedWhilePostedWorkNamesTheRegion) {
  const Link link = Connect();
  Memory source(*one_, 64);
  Memory target(*two_, 64);
  ASSERT_POSTED(two_->Receive(link.two, 1, {target.Entry(8, 8)}));
  ASSERT_POSTED(two_->Receive(link.two, 2, {target.Entry(16, 8)}));
  EXPECT_CODE((*two_)->Deregister(target.region()), kFailedPrecondition);

  ASSERT_POSTED(one_->Send(link.one, 3, {source.Entry(0, 8)}));
  ExpectSuccess(*one_, link.one, 3);
  ExpectSuccess(*two_, link.two, 1);
  EXPECT_CODE((*two_)->Deregister(target.region()), kFailedPrecondition);
  EXPECT_POSTED((*one_)->Deregister(source.region()));

  ASSERT_POSTED((*two_)->DestroyQueuePair(link.two));
  EXPECT_EQ(NextCompletion(*two_, link.two).status, WorkStatus::kFlushed);
  EXPECT_POSTED((*two_)->Deregister(target.region()));
}

TEST_P(MemoryContract, DeregisterIsRefusedWhileAWindowIsBound) {
  ESDP_NEEDS(windows);
  const Link link = Connect();
  Memory memory(*one_, 64);
  const RemoteRange first = Bind(*one_, link.one, memory, 0, 8, kForReading);
  const RemoteRange second = Bind(*one_, link.one, memory, 8, 8, kForReading);
  EXPECT_CODE((*one_)->Deregister(memory.region()), kFailedPrecondition);

  ASSERT_POSTED(one_->Invalidate(link.one, 1, first.key));
  ExpectSuccess(*one_, link.one, 1);
  EXPECT_CODE((*one_)->Deregister(memory.region()), kFailedPrecondition);

  ASSERT_POSTED(one_->Invalidate(link.one, 2, second.key));
  ExpectSuccess(*one_, link.one, 2);
  EXPECT_POSTED((*one_)->Deregister(memory.region()));
}

TEST_P(MemoryContract, RegionKeyNeedsARemoteRight) {
  Memory hidden(*one_, 64, {.local_write = true});
  Memory shown(*one_, 64, {.remote_read = true});

  EXPECT_CODE((*one_)->RegionKey(hidden.region()).status(), kFailedPrecondition);
  EXPECT_POSTED((*one_)->RegionKey(shown.region()).status());
}

TEST_P(MemoryContract, RegionKeyWorksOnEveryQueuePair) {
  const Link first = Connect();
  const Link second = Connect();
  Memory memory(*two_, 4096, {.local_write = true, .remote_read = true});
  memory.Fill(7);
  const absl::StatusOr<RemoteRange> key = (*two_)->RegionKey(memory.region());
  ASSERT_TRUE(key.ok()) << key.status();

  ExpectReadAllowed(first, *key, memory.Copy(0, 4096));
  ExpectReadAllowed(second, {key->key, key->address + 4000}, memory.Copy(4000, 96));

  ExpectWriteRefused(first, *key, 16);
  ExpectReadRefused(second, {key->key, key->address + 4000}, 97);
}

TEST_P(MemoryContract, AKeyDiesWithItsRegion) {
  const Link link = Connect();
  Memory memory(*two_, 64);
  const absl::StatusOr<RemoteRange> key = (*two_)->RegionKey(memory.region());
  ASSERT_TRUE(key.ok()) << key.status();
  ExpectReadAllowed(link, *key, memory.Copy(0, 64));

  ASSERT_POSTED((*two_)->Deregister(memory.region()));

  ExpectReadRefused(link, *key, 64);
}

}  // namespace
}  // namespace esdp::fabric
