// How connections begin: MPA Request and Reply, with peers of every kind.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "impl/base/time.h"
#include "tests/base/manual_clock.h"
#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

class StartupTest : public QpipTest {
 protected:
  void TearDown() override { fabric_.reset(); }  // before its clock

  // The fabric connects to a raw peer that listens; its request is kept.
  void ConnectToPeer(const QueuePairOptions& options = {}, Duration patience = Duration::max()) {
    peer_ = MakePeer();
    Address address = Host(Family::kIpv4);
    address.port = peer_->Listen();
    queue_pair_ = *fabric_->CreateQueuePair(options);
    const absl::Status connecting =
        fabric_->Connect(queue_pair_, Address{}, address, std::as_bytes(std::span("hi", 2)),
                         AddSaturating(fabric_->Now(), patience));
    ASSERT_TRUE(connecting.ok()) << connecting;
    ASSERT_TRUE(peer_->Accept());
    request_ = peer_->Receive(26);
  }
  void ExpectConnectFails(Cause cause) {
    const auto failed = NextEvent(RendezvousType::kConnectFailed);
    ASSERT_TRUE(failed.has_value());
    EXPECT_EQ(failed->cause, cause) << ToString(failed->cause) << ": " << failed->detail;
  }
  static RawStartup Reply() { return {.key = "MPA ID Rep Frame"}; }

  ManualClock clock_;
  Octets request_;
};

TEST_F(StartupTest, AsksInRevisionTwoForAReadyToReceiveWrite) {
  ConnectToPeer({.initiator_depth = 3, .responder_resources = 5});
  const Octets flags_to_words = {0x10, 2, 0, 6, 0x80, 5, 0x80, 3};
  EXPECT_EQ(request_, Text("MPA ID Req Frame") + flags_to_words + Text("hi"));
}

TEST_F(StartupTest, SendsTheReadyToReceiveWriteThatThePeerChose) {
  ConnectToPeer();
  ASSERT_TRUE(peer_->Send(Startup(
      {.key = "MPA ID Rep Frame", .words = Octets{0x80, 4, 0x80, 6}, .data = Text("welcome")})));
  const auto established = NextEvent(RendezvousType::kEstablished);
  ASSERT_TRUE(established.has_value());
  EXPECT_EQ(established->initiator_depth, 4u);
  EXPECT_EQ(established->responder_resources, 6u);
  EXPECT_EQ(established->private_data_bytes, 7u);
  EXPECT_EQ(peer_->Receive(20), Frame(Tagged(0, 0, 0, {}))) << "no bytes, tag and offset 0";
}

// R25.4
TEST_F(StartupTest, AReplyOfRevisionOneGivesOneReadEachWay) {
  ConnectToPeer();
  RawStartup reply = Reply();
  reply.flags = 0;
  reply.revision = 1;
  reply.words.reset();
  ASSERT_TRUE(peer_->Send(Startup(reply)));
  const auto established = NextEvent(RendezvousType::kEstablished);
  ASSERT_TRUE(established.has_value());
  EXPECT_EQ(established->initiator_depth, 1u);
  EXPECT_EQ(established->responder_resources, 1u);
  ASSERT_TRUE(Post(Opcode::kSend, 1, 0, 4).ok());
  const auto first = peer_->ReceiveSegment();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->opcode, 3) << "no ready-to-receive frame was agreed on";
}

TEST_F(StartupTest, ABadReplyFailsTheConnect) {
  const std::vector<std::pair<RawStartup, Cause>> replies = {
      {{.key = "MPA ID Req Frame"}, Cause::kProtocol},
      {{.key = "GET / HTTP/1.1\r\n"}, Cause::kProtocol},
      {{.key = "MPA ID Rep Frame", .flags = 0x90}, Cause::kProtocol},  // markers
      {{.key = "MPA ID Rep Frame", .revision = 3}, Cause::kProtocol},
      {{.key = "MPA ID Rep Frame", .length = 513}, Cause::kProtocol},
      {{.key = "MPA ID Rep Frame", .words = Octets{0, 1}}, Cause::kProtocol},  // words cut
      {{.key = "MPA ID Rep Frame", .words = Octets{0x80, 1, 0x40, 1}}, Cause::kProtocol},
      {{.key = "MPA ID Rep Frame", .words = Octets{0, 1, 0, 17}}, Cause::kProtocol},
      {{.key = "MPA ID Rep Frame", .flags = 0x30}, Cause::kRejected},
  };
  for (const auto& [reply, cause] : replies) {
    SCOPED_TRACE(testing::PrintToString(Startup(reply)));
    ConnectToPeer({.responder_resources = 16});
    ASSERT_TRUE(peer_->Send(Startup(reply)));
    ExpectConnectFails(cause);
  }
}

TEST_F(StartupTest, OneByteThatIsNoReplysFailsTheConnectThoughNoneFollows) {
  for (const std::string text : {"2", "MPA ID Req"}) {
    ConnectToPeer({.responder_resources = 16});
    ASSERT_TRUE(peer_->Send(Octets(text.begin(), text.end())));
    ExpectConnectFails(Cause::kProtocol);
  }
}

// RFC 6581: a responder that picks what was not offered is told so, as its first frame.
TEST_F(StartupTest, AResponderThatPicksWhatWasNotOfferedIsToldByTerminate) {
  const std::vector<std::pair<Octets, uint16_t>> answers = {
      {{0x80, 1, 0x40, 1}, 0x2007},  // ready-to-receive by a READ
      {{0xc0, 1, 0x00, 1}, 0x2007},  // by an empty frame
      {{0x80, 1, 0x80, 17}, 0x2006},
      {{0x00, 1, 0x00, 17}, 0x2006},
  };
  for (const auto& [words, reason] : answers) {
    for (const bool summed : {false, true}) {
      SCOPED_TRACE(testing::Message() << "reason " << reason << (summed ? ", summed" : ""));
      ConnectToPeer({.responder_resources = 16, .checksum = summed});
      RawStartup reply = Reply();
      reply.flags = summed ? 0x50 : 0x10;
      reply.words = words;
      ASSERT_TRUE(peer_->Send(Startup(reply)));
      const auto terminate = peer_->ReceiveSegment();
      ASSERT_TRUE(terminate.has_value());
      EXPECT_EQ(terminate->opcode, 7);
      EXPECT_EQ(terminate->queue, 2u);
      EXPECT_EQ(terminate->payload, Number(reason, 2) + Octets(2, 0));
      EXPECT_TRUE(terminate->sum_is_right || !summed);
      EXPECT_TRUE(peer_->ReceiveEnd()) << "a reset may overtake the Terminate";
      ExpectConnectFails(Cause::kProtocol);
    }
  }
}

TEST_F(StartupTest, APeerThatAcceptsAndVanishesFailsTheConnectAtEveryByteOfItsReply) {
  RawStartup reply = Reply();
  reply.data = Text("abc");
  const Octets bytes = Startup(reply);
  for (size_t kept = 0; kept < bytes.size(); ++kept) {
    ConnectToPeer();
    peer_->Send(Octets(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(kept)));
    peer_->Close();
    ExpectConnectFails(Cause::kPeerReset);
  }
}

TEST_F(StartupTest, APeerThatNeverRepliesTimesOut) {
  Open({.clock = &clock_});
  ConnectToPeer({}, std::chrono::seconds(2));
  clock_.Pass(std::chrono::seconds(2));
  ExpectConnectFails(Cause::kTimedOut);
}

TEST_F(StartupTest, ARequestOfRevisionOneIsAnsweredInKind) {
  Establish({.flags = 0, .revision = 1, .words = std::nullopt, .data = Text("old")});
  EXPECT_EQ(reply_, (Text("MPA ID Rep Frame") + Octets{0, 1, 0, 0}));
  PostReceive(1, 0, 16);
  ASSERT_TRUE(Post(Opcode::kSend, 2, 100, 3).ok());
  ASSERT_TRUE(peer_->Send(Frame(Untagged({}, Text("first")))));
  EXPECT_EQ(peer_->ReceiveSegment()->payload.size(), 3u) << "was held back until then";
}

TEST_F(StartupTest, AResponderStaysSilentUntilTheFirstFrame) {
  Establish();
  ASSERT_TRUE(Post(Opcode::kSend, 2, 100, 3).ok());
  for (int i = 0; i < 50; ++i) Pump();
  EXPECT_TRUE(completions_.empty());
  ASSERT_TRUE(peer_->Send(Frame({})));
  EXPECT_EQ(NextCompletion().work_id, 2u);
}

TEST_F(StartupTest, ReadyToReceiveFramesOfEveryKindEstablish) {
  struct Kind {
    Octets offered;
    Octets answered;  // without the depths
    Octets frame;
  };
  const Octets empty_read =
      Frame(Untagged({.opcode = 1, .queue = 1}, ReadRequestOf(1, 0, 0, 0, 0)));
  std::vector<std::unique_ptr<RawPeer>> earlier;
  for (const Kind& kind :
       std::vector<Kind>{{{0xc0, 4, 0xc0, 4}, {0x80, 0x80}, Frame(Tagged(0, 0, 0, {}))},
                         {{0x80, 4, 0x80, 4}, {0x80, 0x80}, Frame(Tagged(0, 0, 0, {}))},
                         {{0x80, 4, 0x40, 4}, {0x80, 0x40}, empty_read},
                         {{0xc0, 4, 0x00, 4}, {0xc0, 0x00}, Frame({})},
                         {{0x80, 4, 0x00, 4}, {0x80, 0x80}, Frame(Tagged(0, 0, 0, {}))}}) {
    SCOPED_TRACE(testing::PrintToString(kind.offered));
    peer_ = MakePeer();
    ASSERT_TRUE(peer_->Connect(Port()));
    ASSERT_TRUE(peer_->Send(Startup({.words = kind.offered})));
    Accept();
    const Octets reply = peer_->Receive(24);
    ASSERT_EQ(reply.size(), 24u);
    EXPECT_EQ((Octets{reply[20], reply[22]}), kind.answered);
    for (int i = 0; i < 20; ++i) Pump();
    EXPECT_TRUE(events_.empty()) << "established before the peer said that it is ready";
    for (const uint8_t byte : kind.frame) ASSERT_TRUE(peer_->Send({byte}));
    ASSERT_TRUE(NextEvent(RendezvousType::kEstablished).has_value());
    earlier.push_back(std::move(peer_));
  }
}

TEST_F(StartupTest, AnInitiatorThatPromisedASignAndSendsSomethingElseIsRefused) {
  peer_ = MakePeer();
  ASSERT_TRUE(peer_->Connect(Port()));
  ASSERT_TRUE(peer_->Send(Startup({.words = Octets{0x80, 4, 0x80, 4}})));
  Accept();
  PostReceive(1, 0, 16);
  ASSERT_EQ(peer_->Receive(24).size(), 24u);
  ASSERT_TRUE(peer_->Send(Frame(Untagged({}, Text("no sign")))));
  const auto terminate = peer_->ReceiveSegment();
  ASSERT_TRUE(terminate.has_value());
  EXPECT_EQ(terminate->payload, (Octets{0x20, 0x07, 0, 0}));
  ExpectConnectFails(Cause::kProtocol);
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
}

TEST_F(StartupTest, AnInitiatorThatNeverSpeaksUpTimesOut) {
  Open({.startup_timeout = std::chrono::seconds(2), .clock = &clock_});
  peer_ = MakePeer();
  ASSERT_TRUE(peer_->Connect(Port()));
  ASSERT_TRUE(peer_->Send(Startup({.words = Octets{0x80, 4, 0x80, 4}})));
  Accept();
  clock_.Pass(std::chrono::seconds(2));
  ExpectConnectFails(Cause::kTimedOut);
}

TEST_F(StartupTest, MarkersAreRejectedWithoutAskingTheProgram) {
  peer_ = MakePeer();
  ASSERT_TRUE(peer_->Connect(Port()));
  ASSERT_TRUE(peer_->Send(Startup({.flags = 0x90})));
  const Octets reply = peer_->Receive(20);
  ASSERT_EQ(reply.size(), 20u);
  EXPECT_EQ(reply[16] & 0x20, 0x20) << "rejected";
  EXPECT_EQ(reply[16] & 0x80, 0) << "and no markers from us";
  EXPECT_TRUE(peer_->ReceiveEnd());
  EXPECT_TRUE(events_.empty());
}

TEST_F(StartupTest, GarbageInPlaceOfARequestCostsOnlyItsConnection) {
  const std::vector<Octets> garbage = {
      Text("GET / HTTP/1.1\r\n\r\n"), Startup({.key = "MPA ID Rep Frame"}),
      Startup({.revision = 0}),       Startup({.revision = 9}),
      Startup({.flags = 0x30}),       Startup({.length = 513}),
      Startup({.length = 65535}),     Startup({.words = Octets{1, 2}}),
  };
  for (const Octets& bytes : garbage) {
    peer_ = MakePeer();
    ASSERT_TRUE(peer_->Connect(Port()));
    ASSERT_TRUE(peer_->Send(bytes + Octets(20, 0)));
    peer_->ReceiveEnd();
    EXPECT_TRUE(events_.empty());
  }
  ExpectTheFabricWorks();
}

TEST_F(StartupTest, ARequestCutAnywhereIsForgottenWhenItsPeerGoes) {
  const Octets bytes = Startup({.data = Text("private")});
  for (size_t kept = 0; kept < bytes.size(); ++kept) {
    peer_ = MakePeer();
    ASSERT_TRUE(peer_->Connect(Port()));
    peer_->Send(Octets(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(kept)));
    peer_->Close();
    for (int i = 0; i < 3; ++i) Pump();
    EXPECT_TRUE(events_.empty());
  }
  ExpectTheFabricWorks();
}

TEST_F(StartupTest, ARequestMayComeByteByByte) {
  peer_ = MakePeer();
  ASSERT_TRUE(peer_->Connect(Port()));
  for (const uint8_t byte : Startup({.data = Octets(508, 'd')})) ASSERT_TRUE(peer_->Send({byte}));
  const auto request = NextEvent(RendezvousType::kConnectRequest);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->private_data_bytes, 508u);
  EXPECT_EQ(request->initiator_depth, 4u);
  EXPECT_EQ(request->responder_resources, 4u);
}

TEST_F(StartupTest, ASilentPeerIsDroppedInTime) {
  Open({.startup_timeout = std::chrono::seconds(2), .clock = &clock_});
  peer_ = std::make_unique<RawPeer>([this] {
    clock_.Pass(std::chrono::milliseconds(100));
    Pump();
  });
  ASSERT_TRUE(peer_->Connect(Port()));
  EXPECT_TRUE(peer_->ReceiveEnd());
  ExpectTheFabricWorks();
}

TEST_F(StartupTest, ABurstOfSlowPeersGetsInWhole) {
  for (const int backlog : {4, 400}) {
    ASSERT_TRUE(fabric_->StopListening(listener_).ok());
    listener_ = *fabric_->Listen(Host(Family::kIpv4), backlog);
    std::vector<std::unique_ptr<RawPeer>> burst;
    for (int i = 0; i < 300; ++i) {
      burst.push_back(MakePeer());
      ASSERT_TRUE(burst.back()->Connect(Port()));
      Pump();
    }
    for (const auto& peer : burst) ASSERT_TRUE(peer->Send(Startup({})));
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(NextEvent(RendezvousType::kConnectRequest).has_value()) << i;
    }
  }
}

TEST_F(StartupTest, ACrowdOfSilentPeersDoesNotKeepOthersOut) {
  Open({.clock = &clock_});
  std::vector<std::unique_ptr<RawPeer>> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(MakePeer());
    ASSERT_TRUE(crowd.back()->Connect(Port()));
    Pump();
  }
  clock_.Pass(std::chrono::milliseconds(1100));  // they had time to speak, and not said a word
  Pump();
  ExpectTheFabricWorks();
  EXPECT_TRUE(crowd.front()->ReceiveEnd()) << "the oldest made room";
}

TEST_F(StartupTest, TheQueuePairsOfAFabricLookForSilentPeersAtTheSameTimes) {
  constexpr Duration kStep = std::chrono::seconds(1);  // half of the time
  Open({.keep_alive_idle = 2 * kStep, .clock = &clock_});
  Establish();
  const std::unique_ptr<RawPeer> first = std::move(peer_);
  clock_.Pass(kStep / 10);
  Establish();
  const Time look = fabric_->NextDeadline();
  clock_.Pass(look - clock_.Now());
  Pump();
  EXPECT_EQ(fabric_->NextDeadline() - look, kStep) << "both have looked";
}

TEST_F(StartupTest, ServesIpv6) {
  Address any = Host(Family::kIpv6);
  listener_ = *fabric_->Listen(any, 4);
  peer_ = MakePeer();
  ASSERT_TRUE(peer_->Connect(Port(), /*ipv6=*/true));
  ASSERT_TRUE(peer_->Send(Startup({})));
  const auto request = NextEvent(RendezvousType::kConnectRequest);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->peer.family, Family::kIpv6);
  EXPECT_EQ(ToString(request->local), "[::1]:" + std::to_string(Port()));
}

TEST_F(StartupTest, AnUnknownCongestionControlIsNamed) {
  const auto fabric = MakeQpipFabric({.congestion_control = "no-such-thing"});
  EXPECT_TRUE(absl::IsInvalidArgument(fabric.status())) << fabric.status();
  EXPECT_NE(fabric.status().ToString().find("no-such-thing"), std::string::npos);
}

}  // namespace
}  // namespace esdp::fabric::qpip
