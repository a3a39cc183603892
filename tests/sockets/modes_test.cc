#include <vector>

#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Delivery modes that are wished, and a peer that knows of none.

namespace esdp::contract {
namespace {

constexpr uint64_t kLarge = 300'000;

class ModesTest : public PairTest {
 protected:
  static uint64_t As(DeliveryMode mode) { return static_cast<uint64_t>(mode); }
  // Several transfers of that length at once, whose receives wait or come later.
  void CarrySeveral(Side& source, Side& sink, uint64_t length, bool receives_first) {
    constexpr size_t kTransfers = 4;
    std::vector<Memory*> from, to;
    for (size_t i = 0; i < kTransfers; ++i) {
      from.push_back(&Make(source, length));
      from.back()->Fill(length + i);
      to.push_back(&Make(sink, length));
    }
    const auto receive_all = [&] {
      for (Memory* memory : to) (void)sink.Recv(memory->All(), RecvFlags::kWaitAll);
    };
    if (receives_first) receive_all();
    for (Memory* memory : from) (void)source.Send(memory->All());
    if (!receives_first) receive_all();
    ASSERT_TRUE(Pump([&] { return source.Outstanding() + sink.Outstanding() == 0; }));
    for (size_t i = 0; i < kTransfers; ++i) EXPECT_TRUE(SameBytes(from[i]->bytes, to[i]->bytes));
  }
  // Small and large data both ways, in either order.
  void CarryAllWays() {
    for (const uint64_t length : {uint64_t{10}, uint64_t{5'000}, uint64_t{100'000}, kLarge}) {
      for (const bool receives_first : {true, false}) {
        ASSERT_NO_FATAL_FAILURE(CarrySeveral(client_, server_, length, receives_first));
        ASSERT_NO_FATAL_FAILURE(CarrySeveral(server_, client_, length, receives_first));
      }
    }
  }
  void ExpectCombinedOnly() {
    for (Side* side : {&client_, &server_}) {
      const SocketStats stats = side->socket.Stats();
      EXPECT_EQ(stats.mode_changes_sent, 0u);
      EXPECT_EQ(stats.sink_adverts_sent, 0u);
      EXPECT_GT(stats.source_adverts_sent, 0u) << "large data goes by SrcAvail all the same";
      EXPECT_GT(stats.bytes_sent_zero_copy, kLarge);
    }
  }
};

TEST_P(ModesTest, TwoEndsOfThisLibraryPipelineByThemselves) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  CarryAllWays();
  EXPECT_GT(client_.socket.Stats().mode_changes_sent, 0u);
  EXPECT_GT(server_.socket.Stats().mode_changes_sent, 0u);
}

TEST_P(ModesTest, AClientThatBehavesAsDeployedCarriesAllDataWithoutModesOrSinkAdverts) {
  ASSERT_NO_FATAL_FAILURE(Connect({.as_deployed = true}));
  CarryAllWays();
  ExpectCombinedOnly();
}

TEST_P(ModesTest, AServerThatBehavesAsDeployedCarriesAllDataWithoutModesOrSinkAdverts) {
  const SocketOptions pipelined{.send_mode = DeliveryMode::kPipelined};
  ASSERT_NO_FATAL_FAILURE(Connect(pipelined, {.as_deployed = true}));
  CarryAllWays();
  ExpectCombinedOnly();
}

TEST_P(ModesTest, AWishForPipelinedHoldsFromTheStart) {
  ASSERT_NO_FATAL_FAILURE(Connect({.send_mode = DeliveryMode::kPipelined}));
  CarrySeveral(client_, server_, 100, true);
  EXPECT_EQ(client_.socket.Stats().mode_changes_sent, 1u);
  EXPECT_EQ(server_.socket.Stats().mode_changes_received, 1u);
}

TEST_P(ModesTest, AWishForCombinedReadsWhatWouldBeWrittenOtherwise) {
  ASSERT_NO_FATAL_FAILURE(Connect({.send_mode = DeliveryMode::kCombined}));
  CarrySeveral(client_, server_, kLarge, true);
  EXPECT_EQ(client_.socket.Stats().mode_changes_sent, 0u);
  EXPECT_EQ(server_.socket.Stats().sink_adverts_sent, 0u);
  EXPECT_GE(client_.socket.Stats().source_adverts_sent, 4u);
}

TEST_P(ModesTest, AConnectionMaySwitchToMessagesAndBack) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  CarrySeveral(client_, server_, kLarge, false);
  const uint64_t before = client_.socket.Stats().bytes_sent_zero_copy;
  EXPECT_GT(before, 0u);

  const uint64_t buffered = As(DeliveryMode::kBuffered);
  ASSERT_TRUE(client_.socket.SetOption({OptionName::kSendMode, buffered}).ok());
  EXPECT_EQ(std::get<uint64_t>(client_.socket.GetOption(OptionName::kSendMode)->value), buffered);
  // What the peer shows of its receives ends with the mode.
  CarrySeveral(client_, server_, 100, false);
  Settle();
  const uint64_t settled = client_.socket.Stats().bytes_sent_zero_copy;
  EXPECT_EQ(settled, before);
  CarrySeveral(client_, server_, kLarge, true);
  CarrySeveral(client_, server_, kLarge, false);
  EXPECT_EQ(client_.socket.Stats().bytes_sent_zero_copy, settled);

  const uint64_t combined = As(DeliveryMode::kCombined);
  ASSERT_TRUE(client_.socket.SetOption({OptionName::kSendMode, combined}).ok());
  CarrySeveral(client_, server_, kLarge, true);
  EXPECT_GE(client_.socket.Stats().bytes_sent_zero_copy, settled + 3 * kLarge);
}

TEST_P(ModesTest, AReceiverThatWishesMessagesLeavesABufferedPeerAlone) {
  const SocketOptions buffered{.send_mode = DeliveryMode::kBuffered};
  ASSERT_NO_FATAL_FAILURE(Connect(buffered, {.receive_mode = DeliveryMode::kBuffered}));
  CarrySeveral(client_, server_, kLarge, true);
  EXPECT_EQ(server_.socket.Stats().mode_changes_sent, 0u);
  EXPECT_EQ(client_.socket.Stats().mode_changes_sent, 1u);

  // Back to automatic, it asks for more as soon as a large receive waits.
  const uint64_t automatic = As(DeliveryMode::kAutomatic);
  ASSERT_TRUE(server_.socket.SetOption({OptionName::kReceiveMode, automatic}).ok());
  CarrySeveral(client_, server_, kLarge, true);
  EXPECT_EQ(server_.socket.Stats().mode_changes_sent, 1u);
  EXPECT_EQ(client_.socket.Stats().bytes_sent_zero_copy, 0u) << "which the sender need not use";
}

TEST_P(ModesTest, ASocketTakesTheWishesOfItsContext) {
  ContextOptions options = OptionsOf(world(), &server_.context);
  options.send_mode = DeliveryMode::kPipelined;
  options.receive_mode = DeliveryMode::kBuffered;
  options.as_deployed = true;
  absl::StatusOr<Context> context = Context::Open(options);
  ASSERT_TRUE(context.ok()) << context.status();
  const Socket socket = *context->CreateSocket(Family::kIpv4);
  const auto of = [&](OptionName name) {
    return std::get<uint64_t>(socket.GetOption(name)->value);
  };
  EXPECT_EQ(of(OptionName::kSendMode), As(DeliveryMode::kPipelined));
  EXPECT_EQ(of(OptionName::kReceiveMode), As(DeliveryMode::kBuffered));
  EXPECT_EQ(of(OptionName::kAsDeployed), 1u);
}

TEST_P(ModesTest, WishesThatMeanNothingAreRefused) {
  const auto refused = [](const auto& answer) {
    return Refuses(answer, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument);
  };
  ContextOptions options = OptionsOf(world(), &server_.context);
  options.receive_mode = DeliveryMode::kCombined;
  EXPECT_TRUE(refused(Context::Open(options)));
  EXPECT_TRUE(refused(client_.context.CreateSocket(Family::kIpv4, SocketType::kStream,
                                                   {.receive_mode = DeliveryMode::kPipelined})));
  Socket socket = *client_.context.CreateSocket(Family::kIpv4);
  EXPECT_TRUE(refused(socket.SetOption({OptionName::kSendMode, uint64_t{4}})));
  EXPECT_TRUE(refused(socket.SetOption({OptionName::kReceiveMode, uint64_t{2}})));
  EXPECT_TRUE(refused(socket.SetOption({OptionName::kAsDeployed, uint64_t{2}})));
  EXPECT_TRUE(refused(socket.SetOption({OptionName::kSendMode, absl::Seconds(1)})));
}

TEST_P(ModesTest, WhatAConnectionDeclaredCannotBeChangedLater) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (Side* side : {&client_, &server_}) {
    EXPECT_TRUE(Refuses(side->socket.SetOption({OptionName::kAsDeployed, uint64_t{1}}),
                        ErrorKind::kWrongState, absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_TRUE(Refuses(listener_.SetOption({OptionName::kSendMode, uint64_t{1}}),
                      ErrorKind::kWrongState, absl::StatusCode::kFailedPrecondition));
}

ESDP_ON_EVERY_WORLD(ModesTest);

}  // namespace
}  // namespace esdp::contract
