// CONTRACT.md, "Rendezvous", of connections over TCP sockets that are there already.

#include <fcntl.h>
#include <unistd.h>

#include "tests/base/tcp_pair.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ESDP_CONTRACT_SUITE(OverContract);

std::vector<std::byte> Some(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST_P(OverContract, AConnectedTcpSocketCarriesAConnection) {
  ESDP_NEEDS(takes_tcp);
  for (const bool mapped : {false, true}) {
    TcpPair pair(mapped);
    const QueuePairId one = Create(*one_);
    const auto listener = (*two_)->ListenOver(pair.accepted);
    ASSERT_TRUE(listener.ok()) << listener.status();
    ASSERT_POSTED((*one_)->ConnectOver(one, pair.connected, Some(30), kTimeInfinite));
    pair.CloseConnected();
    pair.CloseAccepted();

    const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
    EXPECT_EQ(request.listener, *listener);
    EXPECT_EQ(request.private_data_bytes, 30);
    EXPECT_EQ(request.local.port, pair.port);
    const QueuePairId two = Create(*two_);
    ASSERT_POSTED((*two_)->Accept(request.request, two, Some(10)));
    const RendezvousEvent at_one = NextEvent(*one_, RendezvousType::kEstablished);
    const RendezvousEvent at_two = NextEvent(*two_, RendezvousType::kEstablished);
    EXPECT_EQ(at_one.local, at_two.peer);
    EXPECT_EQ(at_one.peer, at_two.local);
    EXPECT_EQ(at_one.private_data_bytes, 10);

    SpeakFirst({one, two});
    Memory from(*two_, 5000);
    Memory to(*one_, 5000);
    from.Fill(3);
    ASSERT_POSTED(one_->Receive(one, 1, {to.All()}));
    ASSERT_POSTED(two_->Send(two, 2, {from.All()}));
    ExpectSuccess(*one_, one, 1);
    EXPECT_EQ(to.Copy(0, 5000), from.Copy(0, 5000));
    ASSERT_POSTED((*two_)->StopListening(*listener));  // the connection stays
    ASSERT_POSTED((*one_)->Disconnect(one, true));
    ExpectEnds(Cause::kLocalDisconnect, Cause::kPeerDisconnect);
    one_->completions.clear();
    two_->completions.clear();
  }
}

TEST_P(OverContract, WhatIsNoConnectedTcpSocketIsRefused) {
  const QueuePairId one = Create(*one_);
  if (!(*one_)->limits().takes_tcp) {
    EXPECT_CODE((*one_)->ListenOver(0).status(), kUnimplemented);
    EXPECT_CODE((*one_)->ConnectOver(one, 0, {}, kTimeInfinite), kUnimplemented);
    return;
  }
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int unconnected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int unix_pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, unix_pair), 0);
  for (const int wrong : {-1, 1'000'000, file, unconnected, datagrams, unix_pair[0]}) {
    EXPECT_CODE((*one_)->ListenOver(wrong).status(), kInvalidArgument);
    EXPECT_CODE((*one_)->ConnectOver(one, wrong, {}, kTimeInfinite), kInvalidArgument);
  }
  for (const int opened : {file, unconnected, datagrams, unix_pair[0], unix_pair[1]}) close(opened);
  EXPECT_POSTED(StartConnecting(one));  // it has not been used
}

TEST_P(OverContract, AListenerOverATcpSocketTellsThatNothingCame) {
  ESDP_NEEDS(takes_tcp);
  {
    TcpPair pair;
    const ListenerId listener = (*two_)->ListenOver(pair.accepted).value();
    ASSERT_EQ(send(pair.connected, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    ASSERT_EQ(send(pair.connected, "................", 16, 0), 16);
    const RendezvousEvent event = NextEvent(*two_, RendezvousType::kTurnedAway);
    EXPECT_EQ(event.listener, listener);
    EXPECT_EQ(event.cause, Cause::kProtocol);
    EXPECT_NE(event.detail, "");
    EXPECT_EQ(event.local.port, pair.port);
    EXPECT_POSTED((*two_)->StopListening(listener));
  }
  TcpPair pair;
  const ListenerId listener = (*two_)->ListenOver(pair.accepted).value();
  ASSERT_EQ(send(pair.connected, "MPA ID", 6, 0), 6);
  pair.CloseConnected();
  const RendezvousEvent event = NextEvent(*two_, RendezvousType::kTurnedAway);
  EXPECT_EQ(event.listener, listener);
  EXPECT_EQ(event.cause, Cause::kPeerReset);
}

TEST_P(OverContract, StoppingAListenerOverATcpSocketEndsIt) {
  ESDP_NEEDS(takes_tcp);
  TcpPair silent;
  const ListenerId first = (*two_)->ListenOver(silent.accepted).value();
  silent.CloseAccepted();
  EXPECT_POSTED((*two_)->StopListening(first));
  char byte = 0;
  EXPECT_EQ(recv(silent.connected, &byte, 1, 0), 0);
  EXPECT_CODE((*two_)->StopListening(first), kNotFound);

  TcpPair asks;
  const ListenerId second = (*two_)->ListenOver(asks.accepted).value();
  ASSERT_POSTED((*one_)->ConnectOver(Create(*one_), asks.connected, {}, kTimeInfinite));
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  EXPECT_POSTED((*two_)->StopListening(second));
  EXPECT_EQ(NextEvent(*one_, RendezvousType::kConnectFailed).cause, Cause::kRejected);
  EXPECT_CODE((*two_)->Accept(request.request, Create(*two_), {}), kNotFound);
}

}  // namespace
}  // namespace esdp::fabric
