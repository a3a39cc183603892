#include <string>
#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Suspend: a connection that leaves its queue pair for a new one, with all that it carries.

namespace esdp::contract {
namespace {

using absl::StatusCode;

constexpr size_t kLong = 1'000'000;

class SuspensionTest : public PairTest {
 protected:
  static OpId Suspend(Side& side, absl::Duration most = absl::InfiniteDuration()) {
    OpArgs args = side.Args();
    if (most != absl::InfiniteDuration()) args.deadline = side.context.Now() + most;
    return side.Accepted(side.socket.Suspend(args));
  }
  void EndMove(Side& side, OpId move) {
    const Event event = End(side, move);
    EXPECT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.type, EventType::kSuspend);
  }
  // At once or, where the last word on the connection is still to come, by its event.
  void ExpectEnded(Side& side, ErrorKind cause) {
    const auto posted = side.socket.Suspend(side.Args());
    const absl::Status status =
        posted.ok() ? End(side, side.Accepted(posted)).status() : posted.status();
    EXPECT_EQ(KindOf(status), cause) << status;
  }
};

// Wherever the move is: the one that is left does not wait for its deadline of 30 s.
TEST_P(SuspensionTest, AnAbortDuringAMoveIsNoticedAtOnce) {
  const int steps = world() == World::kSim ? 80 : 20;
  for (const bool mover_aborts : {false, true}) {
    for (int step = 0; step < steps; ++step) {
      ASSERT_NO_FATAL_FAILURE(Connect());
      (void)Suspend(client_);
      (void)client_.Recv(Make(client_, 10).All());
      (void)server_.Recv(Make(server_, 10).All());
      for (int i = 0; i < step; ++i) {
        client_.Collect();
        server_.Collect();
        if (world() == World::kSim) (void)server_.context.Progress(absl::Microseconds(2));
      }
      Side& left = mover_aborts ? server_ : client_;
      const absl::Time begun = left.context.Now();
      (void)(mover_aborts ? client_ : server_).Close(CloseMode::kAbort);
      EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
      EXPECT_LT(left.context.Now() - begun, absl::Seconds(15)) << "at step " << step;
      client_.events.clear();
      server_.events.clear();
    }
  }
}

TEST_P(SuspensionTest, TheStreamGoesOnWhoeverAsks) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Address local = client_.socket.local();
  const Address peer = client_.socket.peer();
  Memory& from = Make(client_, kLong);
  Memory& to = Make(server_, kLong);
  uint64_t moves = 0;
  for (Side* side : {&client_, &server_, &client_}) {
    for (const Path path : {Path::kCopy, Path::kZeroCopy}) {
      from.Fill(moves);
      Carry(client_, from, server_, to, kLong, path);
      Carry(server_, to, client_, from, kLong, path);
    }
    EndMove(*side, Suspend(*side));
    ++moves;
    for (Side* end : {&client_, &server_}) {
      ASSERT_TRUE(Pump([&] { return end->socket.Stats().resumptions == moves; }));
    }
  }
  Carry(client_, from, server_, to, kLong);
  EXPECT_EQ(client_.socket.local(), local);
  EXPECT_EQ(client_.socket.peer(), peer);
}

TEST_P(SuspensionTest, WhatIsUnderWayInBothDirectionsArrivesWhole) {
  constexpr uint64_t kParts = 16;
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const Path path : {Path::kCopy, Path::kZeroCopy, Path::kByThreshold}) {
    Memory& there = Make(client_, kLong);
    Memory& back = Make(server_, kLong);
    Memory& arrived_there = Make(server_, kLong);
    Memory& arrived_back = Make(client_, kLong);
    there.Fill(1);
    back.Fill(2);
    std::vector<OpId> moves;
    for (uint64_t part = 0; part < kParts; ++part) {
      const uint64_t length = kLong / kParts;
      const uint64_t at = part * length;
      OpArgs client = client_.Args();
      OpArgs server = server_.Args();
      client.path = server.path = path;
      (void)server_.Recv(arrived_there.At(at, length), RecvFlags::kWaitAll, server);
      (void)client_.Send(there.At(at, length), client);
      (void)server_.Send(back.At(at, length), server);
      (void)client_.Recv(arrived_back.At(at, length), RecvFlags::kWaitAll, client);
      if (part == kParts / 2) moves.push_back(Suspend(client_));
    }
    EndMove(client_, moves[0]);
    EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
    for (Side* side : {&client_, &server_}) {
      for (const Event& event : side->events) EXPECT_TRUE(event.ok()) << event.status();
      side->events.clear();
    }
    EXPECT_TRUE(SameBytes(there.bytes, arrived_there.bytes));
    EXPECT_TRUE(SameBytes(back.bytes, arrived_back.bytes));
  }
}

TEST_P(SuspensionTest, BothMayAskAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId here = Suspend(client_);
  const OpId there = Suspend(server_);
  EndMove(client_, here);
  EndMove(server_, there);
  Carry(client_, Make(client_, kLong), server_, Make(server_, kLong), kLong);
}

TEST_P(SuspensionTest, AHalfThatWasShutStaysShut) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId shut = client_.Accepted(client_.socket.Shutdown(client_.Args()));
  EXPECT_TRUE(End(client_, shut).ok());
  EndMove(server_, Suspend(server_));
  Carry(server_, Make(server_, kLong), client_, Make(client_, kLong), kLong);
  const Event end = End(server_, server_.Recv(Make(server_, 10).All()));
  EXPECT_TRUE(end.ok() && end.eof()) << end.status();
  EXPECT_FALSE(client_.socket.Send(Make(client_, 10).All(), SendFlags::kNone, client_.Args()).ok());
}

TEST_P(SuspensionTest, ItIsRefusedInEveryOtherState) {
  EXPECT_TRUE(Refuses(client_.socket.Suspend(client_.Args()), ErrorKind::kBadHandle,
                      StatusCode::kNotFound));
  client_.socket = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(Refuses(client_.socket.Suspend(client_.Args()), ErrorKind::kWrongState,
                      StatusCode::kFailedPrecondition));
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_TRUE(Refuses(listener_.Suspend(server_.Args()), ErrorKind::kWrongState,
                      StatusCode::kFailedPrecondition));
  const OpId move = Suspend(client_);
  const auto second = client_.socket.Suspend(client_.Args());
  if (second.ok()) {
    // The first one may be over where a thread moves it.
    EXPECT_NE(world(), World::kSim);
    EndMove(client_, client_.Accepted(second));
  } else {
    EXPECT_TRUE(Refuses(second, ErrorKind::kBusy, StatusCode::kFailedPrecondition));
  }
  EndMove(client_, move);
  const OpId receive = server_.Recv(Make(server_, 10).All());
  const OpId close = client_.Close(CloseMode::kAbort);
  EXPECT_TRUE(Refuses(client_.socket.Suspend(client_.Args()), ErrorKind::kShutDown,
                      StatusCode::kFailedPrecondition));
  EXPECT_TRUE(End(client_, close).ok());
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kPeerReset);
  ExpectEnded(server_, ErrorKind::kPeerReset);
}

TEST_P(SuspensionTest, ItIsUnsupportedTowardsADeployedPeerAndAsOne) {
  for (const bool client_is : {true, false}) {
    SocketOptions deployed;
    deployed.as_deployed = true;
    const SocketOptions whole;
    ASSERT_NO_FATAL_FAILURE(Connect(client_is ? deployed : whole, client_is ? whole : deployed));
    for (Side* side : {&client_, &server_}) {
      const Event event = End(*side, Suspend(*side));
      EXPECT_TRUE(Refuses(event.status(), ErrorKind::kUnsupported, StatusCode::kUnimplemented));
    }
    Carry(client_, Make(client_, kLong), server_, Make(server_, kLong), kLong);
    EXPECT_EQ(client_.socket.Stats().resumptions, 0u);
  }
}

TEST_P(SuspensionTest, ACancelThatComesTooLateChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Settle();
  const uint64_t said = client_.socket.Stats().messages_sent;
  const OpId move = Suspend(client_);
  ASSERT_TRUE(Pump([&] { return client_.socket.Stats().messages_sent > said; })) << "SuspComm";
  (void)client_.socket.Cancel(move);
  EndMove(client_, move);
  EndMove(client_, Suspend(client_));
  Carry(client_, Make(client_, kLong), server_, Make(server_, kLong), kLong);
}

TEST_P(SuspensionTest, ThePeersAbortInTheMiddleEndsTheMoveWithItsCause) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId receive = client_.Recv(Make(client_, 10).All());
  // A peer that is gone before it connects anew cannot say so: then the deadline tells.
  const OpId move = Suspend(client_, absl::Seconds(1));
  server_.socket = {};
  const Event ended = End(client_, move);
  const Event received = End(client_, receive);
  EXPECT_FALSE(received.ok());
  if (!ended.ok()) {
    EXPECT_EQ(ended.kind, received.kind);
  }
  ExpectEnded(client_, received.kind);
}

TEST_P(SuspensionTest, ACloseWaitsForTheMoveAndTellsThePeerOnTheNewQueuePair) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, kLong);
  Memory& to = Make(server_, kLong);
  from.Fill(5);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const OpId send = client_.Send(from.All());
  const OpId move = Suspend(client_);
  const OpId close = client_.Close();
  EndMove(client_, move);
  EndWell(client_, send, kLong);
  EndWell(server_, receive, kLong);
  const Event end = End(server_, server_.Recv(to.All()));
  EXPECT_TRUE(end.ok() && end.eof()) << end.status();
  EXPECT_TRUE(End(server_, server_.Close()).ok());
  EXPECT_TRUE(End(client_, close).ok());
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

ESDP_ON_EVERY_WORLD(SuspensionTest);

}  // namespace
}  // namespace esdp::contract
