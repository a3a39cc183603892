// CONTRACT.md, "Rendezvous", of listeners and their requests.

#include <set>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(ListenContract);

TEST_P(ListenContract, PortZeroPicksAFreePort) {
  const absl::StatusOr<ListenerId> first = (*one_)->Listen(GetParam().host, 8);
  const absl::StatusOr<ListenerId> second = (*one_)->Listen(GetParam().host, 8);
  ASSERT_TRUE(first.ok() && second.ok());

  const Address first_address = (*one_)->ListenerAddress(*first).value_or(Address{});
  const Address second_address = (*one_)->ListenerAddress(*second).value_or(Address{});

  EXPECT_NE(first_address.port, 0);
  EXPECT_NE(second_address.port, 0);
  EXPECT_NE(first_address.port, second_address.port);
  EXPECT_EQ(first_address.family, GetParam().host.family);
  EXPECT_EQ(first_address.bytes, GetParam().host.bytes);
}

TEST_P(ListenContract, ATakenPortIsAlreadyThere) {
  const Address taken = Listening();
  EXPECT_CODE((*one_)->Listen(taken, 8).status(), kAlreadyExists);
  EXPECT_CODE((*two_)->Listen(taken, 8).status(), kAlreadyExists);

  ASSERT_POSTED((*two_)->StopListening(listener()));

  EXPECT_POSTED((*one_)->Listen(taken, 8).status());
}

TEST_P(ListenContract, StopListeningRejectsWhatWaits) {
  const QueuePairId seen = Create(*one_);
  const QueuePairId unseen = Create(*one_);
  ASSERT_POSTED(StartConnecting(seen));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED(StartConnecting(unseen));
  LetTimePass();

  ASSERT_POSTED((*two_)->StopListening(listener()));

  EXPECT_CODE((*two_)->Accept(request.request, Create(*two_), {}), kNotFound);
  std::set<QueuePairId> failed;
  for (int i = 0; i < 2; ++i) {
    const RendezvousEvent event = NextEvent(*one_, RendezvousType::kConnectFailed);
    EXPECT_TRUE(event.queue_pair != seen || event.cause == Cause::kRejected)
        << ToString(event.cause);
    // The second one may still have been on its way, where nobody listens any more.
    const bool broken_off = event.cause == Cause::kPeerReset && !(*two_)->limits().tells_why;
    EXPECT_TRUE(event.cause == Cause::kRejected || event.cause == Cause::kRefused || broken_off)
        << ToString(event.cause);
    failed.insert(event.queue_pair);
  }
  EXPECT_EQ(failed, (std::set{seen, unseen}));
  EXPECT_TRUE(two_->events.empty());
}

TEST_P(ListenContract, ARequestIsAnsweredOnce) {
  const QueuePairId accepted = Create(*two_);
  ASSERT_POSTED(StartConnecting(Create(*one_)));
  const RendezvousEvent first = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(first.request, accepted, {}));
  EXPECT_CODE((*two_)->Accept(first.request, Create(*two_), {}), kNotFound);
  EXPECT_CODE((*two_)->Reject(first.request, {}), kNotFound);

  ASSERT_POSTED(StartConnecting(Create(*one_)));
  const RendezvousEvent second = NextEvent(*two_, RendezvousType::kConnectRequest);
  EXPECT_NE(second.request, first.request);
  ASSERT_POSTED((*two_)->Reject(second.request, {}));
  EXPECT_CODE((*two_)->Reject(second.request, {}), kNotFound);
  EXPECT_CODE((*two_)->Accept(second.request, Create(*two_), {}), kNotFound);

  EXPECT_EQ(NextEvent(*two_, RendezvousType::kEstablished).queue_pair, accepted);
}

TEST_P(ListenContract, AFailedAcceptLeavesTheRequest) {
  const Link link = Connect();
  const QueuePairId one = Create(*one_);
  ASSERT_POSTED(StartConnecting(one));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);

  EXPECT_CODE((*two_)->Accept(request.request, QueuePairId{77777}, {}), kNotFound);
  EXPECT_CODE((*two_)->Accept(request.request, link.two, {}), kFailedPrecondition);
  ASSERT_POSTED((*two_)->Accept(request.request, Create(*two_), {}));

  EXPECT_EQ(NextEvent(*one_, RendezvousType::kEstablished).queue_pair, one);
}

TEST_P(ListenContract, AListenerServesManyConnections) {
  constexpr size_t kConnections = 20;
  std::set<QueuePairId> waiting;
  for (size_t i = 0; i < kConnections; ++i) {
    const QueuePairId queue_pair = Create(*one_);
    const std::vector<std::byte> data(i, std::byte{1});
    ASSERT_POSTED(StartConnecting(queue_pair, data));
    waiting.insert(queue_pair);
  }
  std::set<RequestId> requests;
  std::set<size_t> sizes;
  for (size_t i = 0; i < kConnections; ++i) {
    const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
    requests.insert(request.request);
    const auto& data = request.private_data;
    sizes.insert(static_cast<size_t>(std::count(data.begin(), data.end(), std::byte{1})));
    ASSERT_POSTED((*two_)->Accept(request.request, Create(*two_), {}));
  }
  for (size_t i = 0; i < kConnections; ++i) {
    waiting.erase(NextEvent(*one_, RendezvousType::kEstablished).queue_pair);
  }
  EXPECT_EQ(requests.size(), kConnections);
  EXPECT_EQ(sizes.size(), kConnections);
  EXPECT_TRUE(waiting.empty());
}

}  // namespace
}  // namespace esdp::fabric
