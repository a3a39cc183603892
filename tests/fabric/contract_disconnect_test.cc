// CONTRACT.md, "Disconnect".

#include <algorithm>
#include <array>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(DisconnectContract);

TEST_P(DisconnectContract, AnOrderlyEndDeliversWhatWasSent) {
  const Link link = Connect();
  constexpr size_t kSize = 1 << 20;
  constexpr uint64_t kMessages = 6;
  Memory source(*one_, kSize);
  Memory target(*two_, kMessages * kSize);
  source.Fill(51);
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_POSTED(two_->Receive(link.two, i, {target.Entry(i * kSize, kSize)}));
  }
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_POSTED(one_->Send(link.one, i, {source.All()}));
  }

  ASSERT_POSTED((*one_)->Disconnect(link.one, true));

  const std::vector<Completion> sent =
      CompletionsUntilEnd(*one_, link.one, Cause::kLocalDisconnect);
  const std::vector<Completion> received =
      CompletionsUntilEnd(*two_, link.two, Cause::kPeerDisconnect);
  ASSERT_EQ(sent.size(), kMessages);
  ASSERT_EQ(received.size(), kMessages);
  for (uint64_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(sent[i].work_id, i);
    EXPECT_EQ(sent[i].status, WorkStatus::kSuccess) << ToString(sent[i].status);
    EXPECT_EQ(received[i].status, WorkStatus::kSuccess) << ToString(received[i].status);
    EXPECT_TRUE(target.Copy(i * kSize, kSize) == source.Copy(0, kSize));
  }
}

TEST_P(DisconnectContract, AnAbruptEndIsAResetForThePeer) {
  const Link link = Connect();
  ASSERT_POSTED((*one_)->Disconnect(link.one, false));
  ExpectEnds(Cause::kLocalDisconnect, Cause::kPeerReset);

  const Link back = Connect();
  ASSERT_POSTED((*two_)->Disconnect(back.two, false));
  ExpectEnds(Cause::kPeerReset, Cause::kLocalDisconnect);
  Settle();
  EXPECT_TRUE(one_->events.empty());
  EXPECT_TRUE(two_->events.empty());
}

TEST_P(DisconnectContract, DisconnectedComesAfterEveryCompletion) {
  const Link link = Connect();
  Memory memory(*one_, 64);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_POSTED(one_->Receive(link.one, i, {memory.All()}));
    ASSERT_POSTED(two_->Receive(link.two, i, {}));
  }
  ASSERT_POSTED((*one_)->Disconnect(link.one, false));

  RendezvousEvent event;
  for (int i = 0; i < 5; ++i) {
    LetTimePass();
    two_->Collect();
    EXPECT_FALSE((*one_)->PollRendezvous(event)) << "with three completions unpolled";
  }
  std::array<Completion, 2> two;
  size_t polled = (*one_)->Poll(absl::MakeSpan(two));
  EXPECT_LE(polled, 2u);
  EXPECT_FALSE((*one_)->PollRendezvous(event)) << "with one completion unpolled";
  for (int i = 0; i < 200 && polled < 3; ++i) {
    polled += (*one_)->Poll(absl::MakeSpan(two));
    LetTimePass();
  }
  EXPECT_EQ(polled, 3u);

  EXPECT_EQ(NextEvent(*one_, RendezvousType::kDisconnected).queue_pair, link.one);
  const std::vector<Completion> at_two = CompletionsUntilEnd(*two_, link.two, Cause::kPeerReset);
  ASSERT_EQ(at_two.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(at_two[i].work_id, i);
    EXPECT_EQ(at_two[i].status, WorkStatus::kFlushed);
  }
  Settle();
  EXPECT_TRUE(one_->completions.empty());
}

TEST_P(DisconnectContract, ADisconnectedQueuePairTakesNoWork) {
  for (const bool orderly : {true, false}) {
    const Link link = Connect();
    Memory at_one(*one_, 8);
    Memory at_two(*two_, 8);

    ASSERT_POSTED((*one_)->Disconnect(link.one, orderly));

    EXPECT_CODE(one_->Send(link.one, 1, {at_one.All()}), kFailedPrecondition);
    EXPECT_CODE(one_->Receive(link.one, 1, {at_one.All()}), kFailedPrecondition);
    ExpectEnds(Cause::kLocalDisconnect, orderly ? Cause::kPeerDisconnect : Cause::kPeerReset);
    EXPECT_CODE(one_->Send(link.one, 1, {at_one.All()}), kFailedPrecondition);
    EXPECT_CODE(one_->Receive(link.one, 1, {at_one.All()}), kFailedPrecondition);
    EXPECT_CODE(two_->Send(link.two, 1, {at_two.All()}), kFailedPrecondition);
    EXPECT_CODE(two_->Receive(link.two, 1, {at_two.All()}), kFailedPrecondition);
    EXPECT_TRUE(one_->completions.empty());
  }
}

TEST_P(DisconnectContract, DisconnectNeedsAConnection) {
  const QueuePairId queue_pair = Create(*one_);
  EXPECT_CODE((*one_)->Disconnect(queue_pair, true), kFailedPrecondition);
  ASSERT_POSTED(StartConnecting(queue_pair));
  EXPECT_CODE((*one_)->Disconnect(queue_pair, false), kFailedPrecondition);
  ASSERT_POSTED((*one_)->DestroyQueuePair(queue_pair));
  Settle();
  two_->events.clear();

  const Link link = Connect();
  ASSERT_POSTED((*one_)->Disconnect(link.one, true));
  EXPECT_CODE((*one_)->Disconnect(link.one, true), kFailedPrecondition);
  ExpectEnds(Cause::kLocalDisconnect, Cause::kPeerDisconnect);
  EXPECT_CODE((*one_)->Disconnect(link.one, false), kFailedPrecondition);
  EXPECT_CODE((*two_)->Disconnect(link.two, true), kFailedPrecondition);
}

TEST_P(DisconnectContract, AnAbruptEndWaitsForNobody) {
  constexpr size_t kSize = 4 << 20;
  constexpr uint64_t kMessages = 6;  // more than lies on a path
  for (const bool orderly_first : {false, true}) {
    const Link link = Connect();
    Memory memory(*one_, kSize);
    for (uint64_t i = 0; i < kMessages; ++i) {
      ASSERT_POSTED(one_->Send(link.one, i, {memory.All()}));
    }
    if (orderly_first) ASSERT_POSTED((*one_)->Disconnect(link.one, true));
    ASSERT_POSTED((*one_)->Disconnect(link.one, false));

    // Side two is not polled: seen from side one it stands still.
    const auto ended = [&] { return CountEvents(*one_, RendezvousType::kDisconnected) > 0; };
    for (int i = 0; i < 500 && !ended(); ++i) {
      LetTimePass();
      one_->Collect();
    }
    EXPECT_TRUE(ended()) << (orderly_first ? "behind an orderly one" : "from the ready state");
    EXPECT_EQ(one_->completions.size(), kMessages);
    EXPECT_NE(one_->completions.back().status, WorkStatus::kSuccess);

    EXPECT_TRUE(Pump([&] { return CountEvents(*two_, RendezvousType::kDisconnected) > 0; }));
    for (Endpoint* endpoint : {one_.get(), two_.get()}) {
      endpoint->events.clear();
      endpoint->completions.clear();
    }
  }
}

TEST_P(DisconnectContract, BothSidesMayDisconnectAtOnce) {
  const Link link = Connect();

  ASSERT_POSTED((*one_)->Disconnect(link.one, true));
  ASSERT_POSTED((*two_)->Disconnect(link.two, true));

  for (Endpoint* endpoint : {one_.get(), two_.get()}) {
    const RendezvousEvent end = NextEvent(*endpoint, RendezvousType::kDisconnected);
    EXPECT_TRUE(end.cause == Cause::kLocalDisconnect || end.cause == Cause::kPeerDisconnect)
        << ToString(end.cause);
  }
  Settle();
  EXPECT_TRUE(one_->events.empty());
  EXPECT_TRUE(two_->events.empty());
}

TEST_P(DisconnectContract, DestroyFlushesWhatIsPosted) {
  const Link link = Connect();
  Memory memory(*one_, 64);
  ASSERT_POSTED(one_->Receive(link.one, 1, {memory.Entry(0, 8)}));
  ASSERT_POSTED(one_->Receive(link.one, 2, {memory.Entry(8, 8)}));

  ASSERT_POSTED((*one_)->DestroyQueuePair(link.one));
  const QueuePairId next = Create(*one_);

  EXPECT_NE(next, link.one);
  for (uint64_t id = 1; id <= 2; ++id) {
    const Completion completion = NextCompletion(*one_, link.one);
    EXPECT_EQ(completion.work_id, id);
    EXPECT_EQ(completion.status, WorkStatus::kFlushed);
  }
  const RendezvousEvent at_peer = NextEvent(*two_, RendezvousType::kDisconnected);
  EXPECT_EQ(at_peer.queue_pair, link.two);
  EXPECT_EQ(at_peer.cause, AsTold(Cause::kPeerReset, at_peer.cause)) << at_peer.detail;
  Settle();
  EXPECT_TRUE(one_->events.empty());
  EXPECT_TRUE(one_->completions.empty());
}

TEST_P(DisconnectContract, AFabricMayEndWithEverythingOpen) {
  constexpr size_t kSize = 4 << 20;
  const Link link = Connect();
  Memory at_one(*one_, kSize);
  Memory at_two(*two_, kSize);
  const RemoteRange key = (*two_)->RegionKey(at_two.region()).value_or(RemoteRange{});
  if ((*two_)->limits().windows) Bind(*two_, link.two, at_two, 0, 64, kForReading);
  ASSERT_POSTED(two_->Receive(link.two, 1, {at_two.All()}));
  ASSERT_POSTED(one_->Read(link.one, 1, {at_one.All()}, key));
  ASSERT_POSTED(one_->Send(link.one, 2, {at_one.All()}));
  ASSERT_POSTED(StartConnecting(Create(*one_)));
  LetTimePass();
  ASSERT_POSTED(StartConnecting(Create(*one_)));
  ASSERT_POSTED((*one_)->Listen(GetParam().host, 8).status());

  two_->End();
  Pump([&] { return CountEvents(*one_, RendezvousType::kDisconnected) == 1; });
  EXPECT_EQ(CountEvents(*one_, RendezvousType::kDisconnected), 1u);
  one_->End();
}

}  // namespace
}  // namespace esdp::fabric
