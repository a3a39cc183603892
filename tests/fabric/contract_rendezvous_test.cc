// CONTRACT.md, "Rendezvous", of one connection.

#include <algorithm>
#include <array>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

class RendezvousContract : public ContractTest {
 protected:
  // Answering a request whose connecting side has given up leads to no connection that lasts.
  void ExpectAcceptLeadsNowhere(RequestId request) {
    const absl::Status accepted = (*two_)->Accept(request, Create(*two_), {});
    EXPECT_TRUE(accepted.ok() || absl::IsNotFound(accepted)) << accepted;
    if (!accepted.ok()) return;
    EXPECT_TRUE(Pump([&] {
      return CountEvents(*two_, RendezvousType::kConnectFailed) +
                 CountEvents(*two_, RendezvousType::kDisconnected) ==
             1;
    }));
  }
};
INSTANTIATE_TEST_SUITE_P(On, RendezvousContract, ::testing::ValuesIn(ContractVariants()), NameOf);

std::vector<std::byte> PrivateData(size_t size) {
  std::vector<std::byte> data(size);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7 + size);
  return data;
}

std::vector<std::byte> PrivateDataOf(const RendezvousEvent& event) {
  return {event.private_data.begin(), event.private_data.begin() + event.private_data_bytes};
}

// What arrives of `sent`, which `event` brought.
std::vector<std::byte> Arriving(std::vector<std::byte> sent, const RendezvousEvent& event,
                                const Limits& limits) {
  if (limits.pads_private_data && sent.size() < event.private_data_bytes) {
    sent.resize(event.private_data_bytes);
  }
  return sent;
}

TEST_P(RendezvousContract, ConnectingToNobodyIsRefused) {
  Listening();
  const QueuePairId queue_pair = Create(*one_);
  const Address nobody = Listening();
  ASSERT_POSTED((*two_)->StopListening(listener()));

  ASSERT_POSTED((*one_)->Connect(queue_pair, Address{.family = nobody.family}, nobody, {},
                                 (*one_)->Now() + kPatience));
  const RendezvousEvent failed = NextEvent(*one_, RendezvousType::kConnectFailed);

  EXPECT_EQ(failed.queue_pair, queue_pair);
  EXPECT_EQ(failed.cause, Cause::kRefused) << ToString(failed.cause);
  EXPECT_POSTED((*one_)->DestroyQueuePair(queue_pair));
}

TEST_P(RendezvousContract, PrivateDataArrivesExactly) {
  const Limits& limits = (*one_)->limits();
  for (const uint32_t length : {0u, 1u, 4u, 36u, 92u, 196u, 250u, 251u}) {
    SCOPED_TRACE(length);
    const uint32_t size = std::min(length, limits.private_data_max);
    const QueuePairId one = Create(*one_);
    const QueuePairId two = Create(*two_);
    const std::vector<std::byte> asking = PrivateData(size);
    const std::vector<std::byte> answering = PrivateData(limits.answer_data_max - size);
    ASSERT_POSTED(StartConnecting(one, asking));
    const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
    EXPECT_EQ(request.listener, listener());
    EXPECT_EQ(PrivateDataOf(request), Arriving(asking, request, limits));

    ASSERT_POSTED((*two_)->Accept(request.request, two, answering));

    const RendezvousEvent at_one = NextEvent(*one_, RendezvousType::kEstablished);
    EXPECT_EQ(at_one.queue_pair, one);
    EXPECT_EQ(PrivateDataOf(at_one), Arriving(answering, at_one, limits));
    EXPECT_EQ(NextEvent(*two_, RendezvousType::kEstablished).queue_pair, two);
  }
}

TEST_P(RendezvousContract, RefusesTooMuchPrivateData) {
  const std::vector<std::byte> too_much = PrivateData((*one_)->limits().private_data_max + 1);
  const QueuePairId one = Create(*one_);
  const QueuePairId two = Create(*two_);
  EXPECT_CODE(StartConnecting(one, too_much), kOutOfRange);
  ASSERT_POSTED(StartConnecting(one));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);

  EXPECT_CODE(
      (*two_)->Accept(request.request, two, PrivateData((*two_)->limits().answer_data_max + 1)),
      kOutOfRange);
  EXPECT_CODE((*two_)->Reject(request.request, too_much), kOutOfRange);

  ASSERT_POSTED((*two_)->Accept(request.request, two, {}));
  EXPECT_EQ(NextEvent(*one_, RendezvousType::kEstablished).queue_pair, one);
}

TEST_P(RendezvousContract, ARejectionCarriesPrivateData) {
  const QueuePairId queue_pair = Create(*one_);
  const std::vector<std::byte> reason =
      PrivateData(std::min(77u, (*two_)->limits().private_data_max));
  ASSERT_POSTED(StartConnecting(queue_pair));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);

  ASSERT_POSTED((*two_)->Reject(request.request, reason));
  const RendezvousEvent failed = NextEvent(*one_, RendezvousType::kConnectFailed);

  EXPECT_EQ(failed.queue_pair, queue_pair);
  EXPECT_EQ(failed.cause, Cause::kRejected) << ToString(failed.cause);
  EXPECT_EQ(PrivateDataOf(failed), Arriving(reason, failed, (*two_)->limits()));
  Settle();
  EXPECT_TRUE(one_->events.empty());
}

TEST_P(RendezvousContract, AnUnansweredConnectTimesOut) {
  const QueuePairId queue_pair = Create(*one_);
  constexpr auto kTime = std::chrono::milliseconds(500);  // in which the request gets there
  const Time deadline = (*one_)->Now() + kTime;
  ASSERT_POSTED(StartConnecting(queue_pair, {}, kTime));
  Time when{};
  ASSERT_TRUE(Pump([&] {
    when = (*one_)->Now();
    return !one_->events.empty();
  }));

  const RendezvousEvent failed = NextEvent(*one_, RendezvousType::kConnectFailed);
  EXPECT_EQ(failed.cause, Cause::kTimedOut) << ToString(failed.cause);
  EXPECT_GE(when, deadline);
  EXPECT_LE(when, deadline + std::chrono::seconds(5));
  ExpectAcceptLeadsNowhere(NextEvent(*two_, RendezvousType::kConnectRequest).request);
  EXPECT_TRUE(one_->events.empty());
}

TEST_P(RendezvousContract, ReceivesMayBePostedBeforeConnecting) {
  Memory at_one(*one_, 16);
  Memory at_two(*two_, 16);
  at_one.Fill(41);
  const QueuePairId one = Create(*one_);
  const QueuePairId two = Create(*two_);
  ASSERT_POSTED(one_->Receive(one, 1, {at_one.Entry(8, 8)}));
  ASSERT_POSTED(two_->Receive(two, 1, {at_two.Entry(0, 8)}));
  ASSERT_POSTED(StartConnecting(one));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(request.request, two, {}));
  NextEvent(*one_, RendezvousType::kEstablished);

  ASSERT_POSTED(one_->Send(one, 2, {at_one.Entry(0, 8)}));
  ExpectSuccess(*two_, two, 1);
  ASSERT_POSTED(two_->Send(two, 2, {at_two.Entry(0, 8)}));
  ExpectSuccess(*one_, one, 2);
  ExpectSuccess(*one_, one, 1);

  EXPECT_EQ(at_one.Copy(8, 8), at_one.Copy(0, 8));
}

TEST_P(RendezvousContract, EstablishedIsPolledBeforeTheFirstReceive) {
  Memory at_one(*one_, 8);
  Memory at_two(*two_, 8);
  const QueuePairId one = Create(*one_);
  const QueuePairId two = Create(*two_);
  ASSERT_POSTED(two_->Receive(two, 1, {at_two.All()}));
  ASSERT_POSTED(StartConnecting(one));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(request.request, two, {}));
  std::array<Completion, 4> batch;
  bool sent = false;
  for (int i = 0, since_sent = 0; i < 200 && since_sent < 20; ++i) {
    LetTimePass();
    one_->Collect();
    if (!sent && !one_->events.empty()) {
      ASSERT_POSTED(one_->Send(one, 2, {at_one.All()}));
      sent = true;
    }
    ASSERT_EQ((*two_)->Poll(absl::MakeSpan(batch)), 0u);
    if (sent) ++since_sent;
  }
  ASSERT_TRUE(sent);

  RendezvousEvent event;
  bool told = (*two_)->PollRendezvous(event);
  for (int i = 0; i < 200 && !told; ++i) {
    LetTimePass();
    one_->Collect();
    ASSERT_EQ((*two_)->Poll(absl::MakeSpan(batch)), 0u);
    told = (*two_)->PollRendezvous(event);
  }
  ASSERT_TRUE(told);
  EXPECT_EQ(event.type, RendezvousType::kEstablished);
  EXPECT_EQ(event.queue_pair, two);
  ExpectSuccess(*two_, two, 1);
}

TEST_P(RendezvousContract, DepthsAreTheSmallerOfBothSides) {
  QueuePairOptions asking = Options();
  asking.initiator_depth = 3;
  asking.responder_resources = 5;
  QueuePairOptions accepting = Options();
  accepting.initiator_depth = 7;
  accepting.responder_resources = 2;
  const QueuePairId one = (*one_)->CreateQueuePair(asking).value_or(QueuePairId::kNone);
  const QueuePairId two = (*two_)->CreateQueuePair(accepting).value_or(QueuePairId::kNone);

  ASSERT_POSTED(StartConnecting(one));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(request.request, two, {}));
  const RendezvousEvent at_one = NextEvent(*one_, RendezvousType::kEstablished);
  const RendezvousEvent at_two = NextEvent(*two_, RendezvousType::kEstablished);

  EXPECT_EQ(request.initiator_depth, 5u);
  EXPECT_EQ(request.responder_resources, 3u);
  EXPECT_EQ(at_one.initiator_depth, 2u);
  EXPECT_EQ(at_one.responder_resources, 5u);
  EXPECT_EQ(at_two.initiator_depth, 5u);
  EXPECT_EQ(at_two.responder_resources, 2u);
}

TEST_P(RendezvousContract, AQueuePairConnectsOnce) {
  const QueuePairId one = Create(*one_);
  const QueuePairId two = Create(*two_);
  ASSERT_POSTED(StartConnecting(one));
  EXPECT_CODE(StartConnecting(one), kFailedPrecondition);
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(request.request, two, {}));
  NextEvent(*one_, RendezvousType::kEstablished);
  EXPECT_CODE(StartConnecting(one), kFailedPrecondition);

  ASSERT_POSTED((*one_)->Disconnect(one, false));
  EXPECT_CODE(StartConnecting(one), kFailedPrecondition);
  NextEvent(*one_, RendezvousType::kDisconnected);
  EXPECT_CODE(StartConnecting(one), kFailedPrecondition);
}

TEST_P(RendezvousContract, DestroyGivesUpAConnect) {
  for (const bool request_seen : {false, true}) {
    const QueuePairId one = Create(*one_);
    ASSERT_POSTED(StartConnecting(one));
    if (request_seen) {
      ASSERT_TRUE(Pump([&] { return CountEvents(*two_, RendezvousType::kConnectRequest) == 1; }));
    }
    ASSERT_POSTED((*one_)->DestroyQueuePair(one));

    Settle();
    if (CountEvents(*two_, RendezvousType::kConnectRequest) == 1) {
      const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
      ExpectAcceptLeadsNowhere(request.request);
    }
    EXPECT_TRUE(one_->events.empty());
    two_->events.clear();
  }
}

TEST_P(RendezvousContract, AddressesOfBothSidesAgree) {
  const Address listening = Listening();
  const QueuePairId one = Create(*one_);
  ASSERT_POSTED(StartConnecting(one));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(request.request, Create(*two_), {}));
  const RendezvousEvent at_one = NextEvent(*one_, RendezvousType::kEstablished);
  const RendezvousEvent at_two = NextEvent(*two_, RendezvousType::kEstablished);

  EXPECT_EQ(at_one.peer, listening) << ToString(at_one.peer);
  EXPECT_EQ(at_two.local, listening) << ToString(at_two.local);
  EXPECT_EQ(at_one.local, at_two.peer) << ToString(at_one.local) << ToString(at_two.peer);
  EXPECT_NE(at_one.local.port, 0);
  EXPECT_EQ(request.local, at_two.local);
  EXPECT_EQ(request.peer, at_two.peer);
}

TEST_P(RendezvousContract, AReservedAddressIsTheConnections) {
  const Address any{.family = GetParam().host.family};
  const QueuePairId given_up = Create(*one_);
  const absl::StatusOr<Address> first = (*one_)->ReserveAddress(given_up, any, Listening());
  if (absl::IsUnimplemented(first.status())) GTEST_SKIP() << "private data never names it";
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_NE(first->port, 0);
  EXPECT_CODE((*one_)->ReserveAddress(given_up, any, Listening()).status(), kFailedPrecondition);
  ASSERT_POSTED((*one_)->DestroyQueuePair(given_up));
  EXPECT_CODE((*one_)->ReserveAddress(given_up, any, Listening()).status(), kNotFound);

  const QueuePairId queue_pair = Create(*one_);
  const absl::StatusOr<Address> local = (*one_)->ReserveAddress(queue_pair, any, Listening());
  ASSERT_TRUE(local.ok()) << local.status();
  ASSERT_POSTED((*one_)->Connect(queue_pair, *local, Listening(), {}, (*one_)->Now() + kPatience));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  EXPECT_EQ(request.peer.port, local->port);
  ASSERT_POSTED((*two_)->Accept(request.request, Create(*two_), {}));
  EXPECT_EQ(NextEvent(*one_, RendezvousType::kEstablished).local.port, local->port);
  EXPECT_CODE((*one_)->ReserveAddress(queue_pair, any, Listening()).status(), kFailedPrecondition);
}

TEST_P(RendezvousContract, AFailedConnectFlushesItsReceives) {
  const QueuePairId queue_pair = Create(*one_);
  Memory memory(*one_, 16);
  ASSERT_POSTED(one_->Receive(queue_pair, 1, {memory.Entry(0, 8)}));
  ASSERT_POSTED(one_->Receive(queue_pair, 2, {memory.Entry(8, 8)}));
  ASSERT_POSTED(StartConnecting(queue_pair));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Reject(request.request, {}));

  EXPECT_EQ(NextEvent(*one_, RendezvousType::kConnectFailed).queue_pair, queue_pair);
  for (uint64_t id = 1; id <= 2; ++id) {
    const Completion completion = NextCompletion(*one_, queue_pair);
    EXPECT_EQ(completion.work_id, id);
    EXPECT_EQ(completion.status, WorkStatus::kFlushed);
  }
  EXPECT_CODE(one_->Receive(queue_pair, 3, {memory.All()}), kFailedPrecondition);
  EXPECT_CODE(one_->Send(queue_pair, 3, {memory.All()}), kFailedPrecondition);
  EXPECT_POSTED((*one_)->Deregister(memory.region()));
}

TEST_P(RendezvousContract, TheInitiatorSpeaksFirst) {
  const Link link = ConnectSilently(Options(), Options());
  Memory at_one(*one_, 8);
  Memory at_two(*two_, 8);
  ASSERT_POSTED(one_->Receive(link.one, 1, {at_one.All()}));

  const absl::Status early = two_->Send(link.two, 1, {at_two.All()});
  if ((*two_)->limits().initiator_speaks_first) {
    EXPECT_TRUE(early.ok() || absl::IsFailedPrecondition(early)) << early;
  } else {
    EXPECT_TRUE(early.ok()) << early;
  }
  ASSERT_POSTED(two_->Receive(link.two, 2, {}));
  ASSERT_POSTED(one_->Send(link.one, 2, {}));
  const auto has_heard = [&] {
    return std::any_of(
        two_->completions.begin(), two_->completions.end(),
        [](const Completion& completion) { return completion.opcode == Opcode::kReceive; });
  };
  ASSERT_TRUE(Pump(has_heard));
  if (!early.ok()) ASSERT_POSTED(two_->Send(link.two, 1, {at_two.All()}));

  ASSERT_TRUE(Pump([&] { return one_->completions.size() == 2 && two_->completions.size() == 2; }));
  for (const Endpoint* endpoint : {one_.get(), two_.get()}) {
    for (const Completion& completion : endpoint->completions) {
      EXPECT_EQ(completion.status, WorkStatus::kSuccess) << ToString(completion.status);
    }
  }
}

}  // namespace
}  // namespace esdp::fabric
