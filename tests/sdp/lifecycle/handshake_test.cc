#include "impl/sdp/lifecycle/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

namespace esdp::sdp {
namespace {

using testing::SmallConfig;
using testing::Solo;

// R3.3.2, R3.3.3, R3.3.4
TEST(HelloTest, TellsOurVersionSizesPortAndAddresses) {
  Config config = SmallConfig(true);
  config.max_adverts = 7;
  config.local_port = 4711;
  config.ip_version = 6;
  config.local_address[15] = 1;
  config.peer_address[15] = 2;

  const wire::Message message = MakeHello(config, 5);

  const auto& hello = std::get<wire::Hello>(message.body);
  EXPECT_EQ(message.base.buffers, 5);
  EXPECT_EQ(message.base.sequence, 0u);
  EXPECT_EQ(hello.major_version, 2);
  EXPECT_EQ(hello.minor_version, 2);
  EXPECT_EQ(hello.max_adverts, 7);
  EXPECT_EQ(hello.local_receive_size, config.receive_buffer_bytes);
  EXPECT_EQ(hello.capabilities, wire::kCapabilityInvalidate | wire::kCapabilityReturnToken |
                                    wire::kCapabilityMayBeMoved);
  EXPECT_EQ(hello.return_token, wire::ReturnToken{}) << "of a return only";
  EXPECT_EQ(hello.local_port, 4711);
  EXPECT_EQ(hello.ip_version, 6);
  EXPECT_EQ(hello.source_address[15], 1);
  EXPECT_EQ(hello.destination_address[15], 2);
}

// R25.7
TEST(HelloTest, TheCapabilityIsLeftOutWhereKeysAreNoWindows) {
  Config config = SmallConfig(true);
  config.remote_invalidate = false;

  EXPECT_EQ(
      std::get<wire::Hello>(MakeHello(config, 5).body).capabilities & wire::kCapabilityInvalidate,
      0);
  EXPECT_EQ(std::get<wire::HelloAck>(MakeHelloAck(config, 5, {}).body).capabilities &
                wire::kCapabilityInvalidate,
            0);
}

struct Spoil {
  const char* what;
  void (*apply)(wire::Message&);
};

wire::Hello& HelloOf(wire::Message& message) { return std::get<wire::Hello>(message.body); }
wire::HelloAck& AckOf(wire::Message& message) { return std::get<wire::HelloAck>(message.body); }

const Spoil kBadHellos[] = {
    {"major version 1", [](wire::Message& m) { HelloOf(m).major_version = 1; }},
    {"major version 3", [](wire::Message& m) { HelloOf(m).major_version = 3; }},
    {"no adverts", [](wire::Message& m) { HelloOf(m).max_adverts = 0; }},
    {"address family 5", [](wire::Message& m) { HelloOf(m).ip_version = 5; }},
    {"two buffers", [](wire::Message& m) { m.base.buffers = 2; }},
    {"buffers of 36", [](wire::Message& m) { HelloOf(m).local_receive_size = 36; }},
    {"buffers of 2^31 + 1",
     [](wire::Message& m) { HelloOf(m).local_receive_size = (1u << 31) + 1; }},
    {"flags", [](wire::Message& m) { m.base.flags = 1; }},
    {"MSeq", [](wire::Message& m) { m.base.sequence = 1; }},
    {"MSeqAck", [](wire::Message& m) { m.base.acknowledged = 1; }},
    {"another message", [](wire::Message& m) { m.body = wire::Data{}; }},
    {"a HelloAck", [](wire::Message& m) { m.body = wire::HelloAck{}; }},
};

// R2.6.6, R2.8.1, R2.8.2, R2.8.3, R2.8.4, R2.8.5, R2.8.7
TEST(HelloTest, AnUnacceptableOneIsRejectedWithAReasonAndNothingElse) {
  for (const Spoil& spoil : kBadHellos) {
    SCOPED_TRACE(spoil.what);
    Solo solo(SmallConfig(false));
    wire::Message hello = solo.PeerHello({});
    spoil.apply(hello);

    solo.Step(HelloArrived{hello});

    ASSERT_EQ(solo.Last<RejectConnection>().size(), 1u);
    EXPECT_STRNE(solo.Last<RejectConnection>()[0].reason, "");
    EXPECT_EQ(solo.Last<AcceptConnection>().size(), 0u);
    EXPECT_EQ(solo.Last<PostReceive>().size(), 0u);
    ASSERT_EQ(solo.Last<ReportClosed>().size(), 1u);
    EXPECT_EQ(solo.Last<ReportClosed>()[0].cause, Outcome::kHandshakeRefused);
  }
}

const Spoil kBadHelloAcks[] = {
    {"major version", [](wire::Message& m) { AckOf(m).major_version = 1; }},
    {"no adverts", [](wire::Message& m) { AckOf(m).max_adverts = 0; }},
    {"two buffers", [](wire::Message& m) { m.base.buffers = 2; }},
    {"buffers of 36", [](wire::Message& m) { AckOf(m).actual_receive_size = 36; }},
    {"buffers of 2^31 + 1",
     [](wire::Message& m) { AckOf(m).actual_receive_size = (1u << 31) + 1; }},
    {"MSeq", [](wire::Message& m) { m.base.sequence = 9; }},
    {"a Hello", [](wire::Message& m) { m.body = wire::Hello{}; }},
};

// R2.8.1, R2.8.2, R2.8.4, R2.8.5, R2.8.7
TEST(HelloAckTest, AnUnacceptableOneEndsTheConnectionWithAReason) {
  for (const Spoil& spoil : kBadHelloAcks) {
    SCOPED_TRACE(spoil.what);
    Solo solo(SmallConfig(true));
    solo.Step(AskConnect{});
    const OperationId send = solo.Send(5);
    Established established;
    established.hello_ack = solo.PeerHelloAck({});
    spoil.apply(*established.hello_ack);

    solo.Step(established);
    ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
    EXPECT_FALSE(solo.Last<Disconnect>()[0].orderly);
    EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kHandshakeRefused);
    EXPECT_STRNE(solo.Last<Disconnect>()[0].reason, "");
    EXPECT_EQ(solo.Last<ReportConnected>().size(), 0u);
    solo.Step(ConnectionLost{});

    EXPECT_EQ(solo.Result(send)->outcome, Outcome::kHandshakeRefused);
    EXPECT_TRUE(solo.core().closed());
  }
}

TEST(HelloAckTest, AMissingOneIsRefused) {
  Solo solo(SmallConfig(true));
  solo.Step(AskConnect{});
  solo.Step(Established{});

  ASSERT_EQ(solo.Last<Disconnect>().size(), 1u);
  EXPECT_EQ(solo.Last<Disconnect>()[0].cause, Outcome::kHandshakeRefused);
}

// R2.8.6
TEST(HandshakeTest, AMinorVersionAloneIsNoReasonToRefuseAndTheLowerCounts) {
  PeerParameters peer;
  wire::Message hello = Solo(SmallConfig(false)).PeerHello({});
  HelloOf(hello).minor_version = 1;

  EXPECT_EQ(CheckHello(hello, peer), nullptr);

  EXPECT_EQ(peer.minor_version, 1);
  const wire::Message ack = MakeHelloAck(SmallConfig(false), 8, peer);
  EXPECT_EQ(std::get<wire::HelloAck>(ack.body).minor_version, 1);
}

// R2.7.1, R2.7.2
TEST(HandshakeTest, EveryBufferThatTheHelloAnnouncesIsPostedBeforeIt) {
  for (const bool connecting : {true, false}) {
    Solo solo(SmallConfig(connecting));
    if (connecting) {
      solo.Step(AskConnect{});
      EXPECT_EQ(solo.Last<StartConnect>()[0].hello.base.buffers, 8);
    } else {
      solo.Step(HelloArrived{solo.PeerHello({})});
      EXPECT_EQ(solo.Last<AcceptConnection>()[0].hello_ack.base.buffers, 8);
    }
    EXPECT_EQ(solo.Last<PostReceive>().size(), 8u);
    const bool last_is_answer = std::holds_alternative<StartConnect>(solo.last().back()) ||
                                std::holds_alternative<AcceptConnection>(solo.last().back());
    EXPECT_TRUE(last_is_answer);
  }
}

// R2.7.3, R2.7.4
TEST(HandshakeTest, NothingIsSentBeforeTheQueuePairIsReady) {
  Solo solo(SmallConfig(false));
  solo.Step(HelloArrived{solo.PeerHello({})});
  solo.Send(5);
  solo.Arrive(wire::Data{}, 10);
  EXPECT_EQ(Solo::Of<Send>(solo.all()).size(), 0u);

  const OperationId receive = solo.Receive(100);
  EXPECT_FALSE(solo.Result(receive));
  solo.Step(Established{});

  EXPECT_EQ(solo.Last<Send>().size(), 1u);
  EXPECT_EQ(solo.Last<Send>()[0].message.base.acknowledged, 1u);
  EXPECT_EQ(solo.Result(receive)->bytes, 10u);
}

// R2.7.5
TEST(HandshakeTest, TheInitiatorSpeaksFirstWhereTheFabricWantsIt) {
  Config config = SmallConfig(true);
  config.initiator_speaks_first = true;
  Solo solo(config);

  solo.Establish();

  ASSERT_EQ(solo.Last<Send>().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<wire::Data>(solo.Last<Send>()[0].message.body));
  EXPECT_EQ(solo.Last<Send>()[0].copied_bytes + solo.Last<Send>()[0].gather_count, 0u);
}

// R2.7.6
TEST(HandshakeTest, TheAcceptingSideHoldsItsSendsUntilTheInitiatorHasSpoken) {
  Config config = SmallConfig(false);
  config.initiator_speaks_first = true;
  Solo solo(config);
  solo.Establish();
  solo.Send(5);
  solo.Step(AskShutdown{OperationId{77}});
  EXPECT_EQ(Solo::Of<Send>(solo.all()).size(), 0u);

  solo.Arrive(wire::Data{});

  EXPECT_EQ(solo.Last<Send>().size(), 2u);
}

TEST(HandshakeTest, AFailedConnectEndsWhatWasAskedInTheMeantime) {
  Solo solo(SmallConfig(true));
  solo.Step(AskConnect{});
  const OperationId send = solo.Send(5);
  const OperationId receive = solo.Receive(5);

  solo.Step(ConnectFailed{});

  EXPECT_EQ(solo.Result(send)->outcome, Outcome::kConnectFailed);
  EXPECT_EQ(solo.Result(receive)->outcome, Outcome::kConnectFailed);
  EXPECT_EQ(solo.Last<ReportClosed>()[0].cause, Outcome::kConnectFailed);
  EXPECT_TRUE(solo.core().closed());
}

}  // namespace
}  // namespace esdp::sdp
