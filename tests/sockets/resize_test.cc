#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Receive buffers that become larger because the sender of much data asks for it.

namespace esdp::contract {
namespace {

class ResizeTest : public PairTest {
 protected:
  static constexpr uint64_t kBytes = 2'000'000;
  static constexpr uint32_t kWish = 60'000;
  static SocketOptions Asking() {
    SocketOptions options;
    options.peer_receive_buffer_bytes = kWish;
    return options;
  }
  static SocketOptions LeavingThem() {
    SocketOptions options;
    options.peer_receive_buffer_bytes = 0;
    return options;
  }
  // Where memory is pinned they do not, and the simulated network is as it is told.
  bool GrowsByItself() const {
    return TransportOf(world()) != Transport::kVerbs && world() != World::kSim;
  }
  static SocketOptions Bounded(uint32_t most) {
    SocketOptions options;
    options.receive_buffer_bytes_max = most;
    return options;
  }
  void CarryAll() {
    Memory& from = Make(client_, kBytes);
    Memory& to = Make(server_, kBytes);
    from.Fill(1);
    Carry(client_, from, server_, to, kBytes, Path::kCopy);
    EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
  }
};

TEST_P(ResizeTest, ThePeersBuffersGrowWhileTheStreamRunsAndMessagesBecomeFewer) {
  ASSERT_NO_FATAL_FAILURE(Connect(Asking()));
  CarryAll();
  EXPECT_EQ(client_.socket.Stats().peer_resizes, 1u);
  EXPECT_EQ(server_.socket.Stats().receive_resizes, 1u);
  const uint64_t grown = client_.socket.Stats().messages_sent;

  ASSERT_NO_FATAL_FAILURE(Connect(LeavingThem()));
  CarryAll();
  EXPECT_EQ(server_.socket.Stats().receive_resizes, 0u);
  EXPECT_LT(grown + 40, client_.socket.Stats().messages_sent);
}

TEST_P(ResizeTest, ByFabricTheyGrowForSendsThatDoNotFitThem) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  CarryAll();
  EXPECT_EQ(server_.socket.Stats().receive_resizes, GrowsByItself() ? 1u : 0u);
  EXPECT_EQ(client_.socket.Stats().receive_resizes, 0u);
}

TEST_P(ResizeTest, ByFabricTheyStayForSendsThatFitThem) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kFits = 16 * 1024;
  Memory& from = Make(client_, kFits);
  Memory& to = Make(server_, kFits);
  for (uint64_t sent = 0; sent < kBytes; sent += kFits) {
    Carry(client_, from, server_, to, kFits, Path::kCopy);
  }
  EXPECT_EQ(server_.socket.Stats().receive_resizes, 0u);
}

TEST_P(ResizeTest, ByFabricNoneThatIsLargerShrinks) {
  SocketOptions large;
  large.receive_buffer_bytes = 70 * 1024;
  ASSERT_NO_FATAL_FAILURE(Connect({}, large));
  for (int i = 0; i < 4; ++i) CarryAll();  // more than 64 of them full
  EXPECT_EQ(server_.socket.Stats().receive_resizes, 0u);
}

TEST_P(ResizeTest, WhatTheReceiverDoesNotAllowStaysAsItIs) {
  ASSERT_NO_FATAL_FAILURE(Connect(Asking(), Bounded(0)));
  CarryAll();
  EXPECT_EQ(server_.socket.Stats().receive_resizes, 0u);
  EXPECT_EQ(client_.socket.Stats().peer_resizes, 0u);
}

TEST_P(ResizeTest, BothDirectionsMayAskAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Connect(Asking(), Asking()));
  Memory& there = Make(client_, kBytes);
  Memory& back = Make(server_, kBytes);
  Memory& arrived_there = Make(server_, kBytes);
  Memory& arrived_back = Make(client_, kBytes);
  there.Fill(1);
  back.Fill(2);
  OpArgs client = client_.Args();
  OpArgs server = server_.Args();
  client.path = server.path = Path::kCopy;
  for (uint64_t at = 0; at < kBytes; at += kBytes / 4) {
    (void)server_.Recv(arrived_there.At(at, kBytes / 4), RecvFlags::kWaitAll, server);
    (void)client_.Recv(arrived_back.At(at, kBytes / 4), RecvFlags::kWaitAll, client);
    (void)client_.Send(there.At(at, kBytes / 4), client);
    (void)server_.Send(back.At(at, kBytes / 4), server);
  }
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
  EXPECT_TRUE(SameBytes(there.bytes, arrived_there.bytes));
  EXPECT_TRUE(SameBytes(back.bytes, arrived_back.bytes));
  EXPECT_GE(server_.socket.Stats().receive_resizes + client_.socket.Stats().receive_resizes, 1u);
}

TEST_P(ResizeTest, SizesOutOfRangeAreRefused) {
  Socket socket = *client_.context.CreateSocket(Family::kIpv4);
  for (const OptionName name :
       {OptionName::kReceiveBufferBytesMax, OptionName::kPeerReceiveBufferBytes}) {
    EXPECT_TRUE(Refuses(socket.SetOption({name, uint64_t{1} << 21}), ErrorKind::kInvalidArgument,
                        absl::StatusCode::kInvalidArgument));
    EXPECT_TRUE(socket.SetOption({name, uint64_t{5000}}).ok());
    EXPECT_EQ(std::get<uint64_t>(socket.GetOption(name)->value), 5000u);
  }
}

ESDP_ON_EVERY_WORLD(ResizeTest);

}  // namespace
}  // namespace esdp::contract
