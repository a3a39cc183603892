// Connections over a TCP socket that is there already, and move from it to a better fabric.

#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/base/tcp_pair.h"
#include "tests/sockets/harness.h"

namespace esdp::contract {
namespace {

constexpr size_t kLong = 1'000'000;

class AnotherFabricTest : public PairTest {
 protected:
  void SetUp() override {}

  void Open(const std::string& server, const std::string& client) {
    server_ = Side();
    client_ = Side();
    ContextOptions options = OptionsOf(world());
    options.fabric = server;
    ASSERT_NO_FATAL_FAILURE(server_.Open(options));
    options.fabric = client;
    ASSERT_NO_FATAL_FAILURE(client_.Open(options));
  }
  // Client and server have both ends of a connection over the TCP socket.
  void Meet(const std::string& server, const std::string& client) {
    ASSERT_NO_FATAL_FAILURE(Open(server, client));
    MeetAgain();
  }
  void MeetAgain() {
    TcpPair pair;
    Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
    client_.socket = client_.context.CreateSocket(Family::kIpv4).value();
    ASSERT_TRUE(listener.ListenOver(pair.accepted).ok());
    const OpId accept = server_.Accepted(listener.Accept(1, server_.Args()));
    const OpId connect =
        client_.Accepted(client_.socket.ConnectOver(pair.connected, client_.Args()));
    ASSERT_TRUE(End(client_, connect).ok());
    const Event accepted = End(server_, accept);
    ASSERT_TRUE(accepted.ok());
    server_.socket = server_.context.TakeAccepted(accepted.accepted).value();
    ASSERT_EQ(server_.socket.transport(), Transport::kQpip);
    ASSERT_EQ(client_.socket.transport(), Transport::kQpip);
  }
  void AbortBoth() {
    (void)client_.Close(CloseMode::kAbort);
    (void)server_.Close(CloseMode::kAbort);
    EXPECT_TRUE(BothEnd());
  }
  bool BothEnd() {
    return Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; });
  }
  Event Move(Side& side) { return End(side, side.Accepted(side.socket.Suspend(side.Args()))); }
  void CarryBothWays(Path path = Path::kByThreshold) {
    Memory& one = Make(client_, kLong);
    Memory& other = Make(server_, kLong);
    one.Fill(1);
    Carry(client_, one, server_, other, kLong, path);
    Carry(server_, other, client_, one, kLong, path);
  }
};
INSTANTIATE_TEST_SUITE_P(On, AnotherFabricTest,
                         ::testing::Values(World::kLocalThread, World::kLocalManual), ParamName);

TEST_P(AnotherFabricTest, WhoeverAsksTheConnectionGoesOnInSharedMemory) {
  for (const bool server_asks : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Meet("auto", "auto"));
    const Address local = client_.socket.local();
    const Address peer = client_.socket.peer();
    CarryBothWays();
    const Event moved = Move(server_asks ? server_ : client_);
    ASSERT_TRUE(moved.ok()) << moved.status();
    for (const Path path : {Path::kCopy, Path::kZeroCopy}) CarryBothWays(path);
    EXPECT_EQ(client_.socket.transport(), Transport::kLocal);
    EXPECT_EQ(server_.socket.transport(), Transport::kLocal);
    EXPECT_EQ(client_.socket.local(), local);
    EXPECT_EQ(client_.socket.peer(), peer);
    EXPECT_EQ(server_.socket.peer(), local);
    const OpId client = client_.Close();
    const OpId server = server_.Close();
    EXPECT_TRUE(End(client_, client).ok());
    EXPECT_TRUE(End(server_, server).ok());
  }
}

TEST_P(AnotherFabricTest, APeerThatHasNoOtherFabricComesBackOverTcp) {
  for (const bool has_server : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Meet(has_server ? "auto" : "qpip", has_server ? "qpip" : "auto"));
    for (Side* side : {&server_, &client_}) {
      const Event moved = Move(*side);
      ASSERT_TRUE(moved.ok()) << moved.status();
      CarryBothWays();
      EXPECT_EQ(side->socket.transport(), Transport::kQpip);
    }
    AbortBoth();
  }
}

TEST_P(AnotherFabricTest, ItMayMoveAgainAndAgain) {
  ASSERT_NO_FATAL_FAILURE(Meet("auto", "auto"));
  for (int i = 0; i < 10; ++i) {
    Side& side = i % 2 == 0 ? server_ : client_;
    const Event moved = Move(side);
    ASSERT_TRUE(moved.ok()) << moved.status();
    CarryBothWays();
    EXPECT_EQ(side.socket.transport(), Transport::kLocal);
  }
}

// Wherever in the stream: what waits in buffers, what is advertised, receives that are shown.
TEST_P(AnotherFabricTest, WhatIsUnderWayArrivesInOrder) {
  constexpr size_t kPiece = 150'000;
  constexpr size_t kPieces = 8;
  ASSERT_NO_FATAL_FAILURE(Open("auto", "auto"));
  for (size_t at = 0; at <= kPieces; ++at) {
    ASSERT_NO_FATAL_FAILURE(MeetAgain());
    Memory& from = Make(client_, kPieces * kPiece);
    Memory& to = Make(server_, kPieces * kPiece);
    from.Fill(at + 1);
    std::vector<OpId> sends;
    std::vector<OpId> receives;
    OpId move = OpId::kNone;
    for (size_t i = 0; i < kPieces; ++i) {
      if (i == at) move = server_.Accepted(server_.socket.Suspend(server_.Args()));
      sends.push_back(client_.Send(from.At(i * kPiece, i % 2 == 0 ? kPiece : 100)));
      sends.push_back(client_.Send(
          from.At(i * kPiece + (i % 2 == 0 ? 0 : 100), i % 2 == 0 ? 0 : kPiece - 100)));
      client_.Collect();
      if (i % 3 != 2) continue;
      receives.push_back(server_.Recv(to.At((i - 2) * kPiece, 3 * kPiece), RecvFlags::kWaitAll));
    }
    receives.push_back(server_.Recv(to.At(6 * kPiece, 2 * kPiece), RecvFlags::kWaitAll));
    if (move == OpId::kNone) move = server_.Accepted(server_.socket.Suspend(server_.Args()));
    for (const OpId op : sends) EXPECT_TRUE(End(client_, op).ok());
    for (const OpId op : receives) EXPECT_TRUE(End(server_, op).ok());
    const Event moved = End(server_, move);
    EXPECT_TRUE(moved.ok()) << moved.status();
    EXPECT_EQ(server_.socket.transport(), Transport::kLocal);
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes)) << "asked for before piece " << at;
    AbortBoth();
  }
}

// Where no connection is the fabric is looked at seldom.
TEST_P(AnotherFabricTest, ARequestThatIsThereBeforeItsListenerIsFoundAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Open("auto", "auto"));
  for (int i = 0; i < 10; ++i) {
    TcpPair pair;
    client_.socket = client_.context.CreateSocket(Family::kIpv4).value();
    const OpId connect =
        client_.Accepted(client_.socket.ConnectOver(pair.connected, client_.Args()));
    Settle();
    Socket listener = server_.context.CreateSocket(Family::kIpv4).value();
    ASSERT_TRUE(listener.ListenOver(pair.accepted).ok());
    const OpId accept = server_.Accepted(listener.Accept(1, server_.Args()));
    const Event accepted = End(server_, accept);
    ASSERT_TRUE(accepted.ok());
    EXPECT_TRUE(End(client_, connect).ok());
    server_.socket = server_.context.TakeAccepted(accepted.accepted).value();
    AbortBoth();
  }
}

TEST_P(AnotherFabricTest, APeerThatMayNotBeMovedStaysWhereItIs) {
  ContextOptions options = OptionsOf(world());
  options.fabric = "auto";
  ASSERT_NO_FATAL_FAILURE(server_.Open(options));
  options.peer_moves = PeerMoves::kRefused;
  ASSERT_NO_FATAL_FAILURE(client_.Open(options));
  ASSERT_NO_FATAL_FAILURE(MeetAgain());
  EXPECT_EQ(Move(server_).kind, ErrorKind::kUnsupported);
  CarryBothWays();
  EXPECT_EQ(server_.socket.transport(), Transport::kQpip);
}

TEST_P(AnotherFabricTest, AnAbortDuringTheMoveIsNoticedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Open("auto", "auto"));
  for (const bool mover_aborts : {false, true}) {
    for (int step = 0; step < 20; ++step) {
      ASSERT_NO_FATAL_FAILURE(MeetAgain());
      (void)server_.Accepted(server_.socket.Suspend(server_.Args()));
      (void)client_.Recv(Make(client_, 10).All());
      (void)server_.Recv(Make(server_, 10).All());
      for (int i = 0; i < step; ++i) {
        client_.Collect();
        server_.Collect();
      }
      Side& left = mover_aborts ? client_ : server_;
      const absl::Time begun = left.context.Now();
      (void)(mover_aborts ? server_ : client_).Close(CloseMode::kAbort);
      EXPECT_TRUE(BothEnd());
      EXPECT_LT(left.context.Now() - begun, absl::Seconds(15)) << "at step " << step;
    }
  }
}

}  // namespace
}  // namespace esdp::contract
