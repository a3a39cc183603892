#include <netinet/in.h>

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"
#include "tests/provider/several_fabrics.h"

// SDP's opening in connection profile A: what the peer, in a kernel, hears and what it may answer.

namespace esdp::provider {
namespace {

namespace wire = sdp::wire;

class NativeTest : public SeveralFabricsTest {
 protected:
  NativeTest() {
    system_.link_layer = IBV_LINK_LAYER_INFINIBAND;
    auto native = fabric::verbs::MakeVerbsFabric(
        {.profile = fabric::verbs::Profile::kNative, .calls = &calls_, .clock = &clock_});
    here_.shard = *Shard::Create(*std::move(native), here_.recorder, Manual(&log_));
  }

  void ConnectAsFarAsTheRequest() {
    (void)Connect(5001);
    system_.ids.back()->route.addr.src_sin.sin_family = AF_INET;
    Manager(RDMA_CM_EVENT_ADDR_RESOLVED);
    Manager(RDMA_CM_EVENT_ADDR_RESOLVED);
    Manager(RDMA_CM_EVENT_ROUTE_RESOLVED);
    ASSERT_EQ(system_.Count("connect"), 1u);
  }
  void Answer(const std::vector<std::byte>& private_data) {
    rdma_cm_event event{};
    event.event = RDMA_CM_EVENT_ESTABLISHED;
    event.id = system_.ids.back().get();
    event.param.conn.private_data = private_data.data();
    event.param.conn.private_data_len = static_cast<uint8_t>(private_data.size());
    event.param.conn.initiator_depth = event.param.conn.responder_resources = 4;
    system_.events.push_back(event);
    const uint64_t one = 1;
    ASSERT_EQ(write(system_.event_channel.fd, &one, sizeof one), ssize_t{sizeof one});
    RunAWhile();
  }
  // As a deployed peer has it: one advert.
  static std::vector<std::byte> HelloAck() {
    wire::Message message;
    message.base.buffers = 16;
    message.body = wire::HelloAck{.actual_receive_size = 16 * 1024 + 16};
    std::get<wire::HelloAck>(message.body).max_adverts = 1;
    std::vector<std::byte> bytes(wire::kHelloAckBytes);
    bytes.resize(wire::Encode(message, 0, bytes));
    return bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(On, NativeTest, ::testing::Values(IBV_TRANSPORT_IB),
                         [](const auto&) { return "InfiniBand"; });

// R2.6.7
TEST_P(NativeTest, TheHelloIsWholeAndHasThePortAndTheAddressesOfTheConnection) {
  ConnectAsFarAsTheRequest();
  ASSERT_EQ(system_.private_data.size(), wire::kHelloBytes);
  wire::Message message;
  ASSERT_FALSE(wire::DecodeHello(system_.private_data, {}, message));
  const auto& hello = std::get<wire::Hello>(message.body);
  EXPECT_EQ(hello.ip_version, 4);
  EXPECT_NE(hello.local_port, 0);
  EXPECT_EQ(hello.local_port,
            ntohs(system_.ids[system_.ids.size() - 2]->route.addr.src_sin.sin_port));
  EXPECT_EQ(hello.source_address, Loopback(0).bytes);
  EXPECT_EQ(hello.destination_address, Loopback(0).bytes);
}

TEST_P(NativeTest, TheAnswerOfADeployedPeerMakesTheConnection) {
  ConnectAsFarAsTheRequest();
  Answer(HelloAck());
  EXPECT_EQ(here_.recorder.connected().size(), 1u);
  EXPECT_TRUE(here_.recorder.closed().empty());
}

TEST_P(NativeTest, AnAnswerThatIsNoneEndsTheConnectionWithTheReason) {
  std::vector<std::byte> no_adverts = HelloAck();
  no_adverts[19] = std::byte{0};
  for (const std::vector<std::byte>& answer :
       {std::vector<std::byte>{}, std::vector<std::byte>(wire::kHelloAckBytes, std::byte{0xff}),
        no_adverts}) {
    system_.asked.clear();
    here_.recorder.Forget();
    ConnectAsFarAsTheRequest();
    Answer(answer);
    clock_.Pass(std::chrono::seconds(2));
    ASSERT_TRUE(RunUntil([&] { return !here_.recorder.closed().empty(); }));
    EXPECT_TRUE(here_.recorder.connected().empty());
    EXPECT_NE(here_.recorder.closed()[0].failure.text.find("HelloAck"), std::string::npos)
        << here_.recorder.closed()[0].failure.text;
  }
}

TEST_P(NativeTest, ListeningIsRefusedWithTheReason) {
  const absl::Status refused = here_.shard->Listen(Loopback(0), 1, {}).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
}

}  // namespace
}  // namespace esdp::provider
