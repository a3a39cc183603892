#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// Who may move a connection, who may come back to it, and where a server lets itself be led.

namespace esdp::contract {
namespace {

using absl::StatusCode;

constexpr uint8_t kData = 0xff;
constexpr uint8_t kSuspComm = 0x0d;
constexpr uint8_t kSuspCommAck = 0x0e;
constexpr uint8_t kKnowsToken = 0x4;
constexpr uint8_t kMayBeMoved = 0x8;
constexpr size_t kBeforeHelloAck = 20 + 4;  // MPA reply, depths
constexpr size_t kHandshake = kBeforeHelloAck + 196;

class PeerMovesTest : public PairTest {
 protected:
  // In place of the server that lets everybody move it.
  void OpenServer(PeerMoves moves, uint32_t moves_max = 16) {
    server_.queue = EventQueue();
    ContextOptions options;
    options.fabric = "qpip";
    options.progress = world() == World::kQpipManual ? Progress::kManual : Progress::kThread;
    options.peer_moves = moves;
    options.moves_max = moves_max;
    options.log = [this](std::string_view line) { log_ += std::string(line) + "\n"; };
    ASSERT_NO_FATAL_FAILURE(server_.Open(options, 64));
  }
  std::unique_ptr<RawStream> Raw(uint16_t port, const Octets& says) {
    auto raw = RawUnlessRefused(port, says);
    EXPECT_NE(raw, nullptr);
    return raw;
  }
  std::unique_ptr<RawStream> RawUnlessRefused(uint16_t port, const Octets& says) {
    auto raw = std::make_unique<RawStream>(
        [this](const std::function<bool()>& done) { return Pump(done); });
    if (!raw->Connect(port)) return nullptr;
    raw->Write(says);
    return raw;
  }
  static Octets Hello(uint8_t capabilities) {
    Octets hello = HonestHello();
    hello[17] = static_cast<uint8_t>(0x40 | capabilities);
    hello[19] = 16;  // MaxAdverts
    return hello;
  }
  // The server's socket is connected to a hand-made peer, and receives.
  void Shake(uint8_t capabilities) {
    address_ = Listen();
    accept_ = server_.Accepted(listener_.Accept(0, server_.Args()));
    raw_ = Raw(address_.port(), MpaRequest(Hello(capabilities)));
    ASSERT_GE(raw_->Read(kHandshake).size(), kHandshake);
    const Event event = Next(server_);
    server_.socket = *server_.context.TakeAccepted(event.accepted);
    raw_->Write(SendFrame(SdpMessage(kData, 1), 1));  // it speaks first
    receive_ = server_.Recv(Make(server_, 100).All());
  }
  void SaySuspComm(uint16_t port) {
    Octets service(8);
    Put(service, 4, 0x10000u | port, 4);
    raw_->Write(SendFrame(SdpMessage(kSuspComm, 2, service), 2));
  }
  // The port that the server's SuspComm names.
  uint16_t ReadSuspComm() {
    const size_t at = kHandshake + 2 + 18;  // length, headers of DDP and RDMAP
    const Octets& said = raw_->Read(at + 24);
    if (said.size() < at + 24 || said[at] != kSuspComm) return 0;
    return static_cast<uint16_t>(said[at + 22] << 8 | said[at + 23]);
  }
  Octets Return(bool with_token) const {
    Octets hello = Hello(kKnowsToken | kMayBeMoved);
    Put(hello, 28, raw_->port(), 2);
    if (with_token) {
      const auto token = raw_->taken().begin() + kBeforeHelloAck + 24;
      std::copy(token, token + 16, hello.begin() + 68);
    }
    return MpaRequest(hello);
  }

  // It would talk to itself for ever.
  void ExpectNotLed(uint8_t capabilities) {
    ASSERT_NO_FATAL_FAILURE(OpenServer(PeerMoves::kUnguarded));
    ASSERT_NO_FATAL_FAILURE(Shake(capabilities));
    SaySuspComm(address_.port());
    EXPECT_TRUE(raw_->WaitForEnd());
    raw_->Close();
    EXPECT_FALSE(End(server_, receive_).ok());
    EXPECT_NE(log_.find("does not wait here"), std::string::npos) << log_;
    Settle();
    server_.Collect();
    for (const Event& event : server_.events) EXPECT_NE(event.type, EventType::kAccept);
  }

  Address address_;
  OpId accept_ = OpId::kNone;
  OpId receive_ = OpId::kNone;
  std::unique_ptr<RawStream> raw_;
  std::string log_;
};
ESDP_ON_TCP_WORLDS(PeerMovesTest);

TEST_P(PeerMovesTest, UnlessItIsAskedForNobodyIsMoved) {
  EXPECT_EQ(ContextOptions().peer_moves, PeerMoves::kRefused);
  ASSERT_NO_FATAL_FAILURE(OpenServer(PeerMoves::kRefused));
  ASSERT_NO_FATAL_FAILURE(Shake(kKnowsToken | kMayBeMoved));
  EXPECT_EQ(raw_->taken()[kBeforeHelloAck + 17] & kMayBeMoved, 0) << "and says so";
  SaySuspComm(1);
  EXPECT_TRUE(
      Refuses(End(server_, receive_).status(), ErrorKind::kPeerProtocol, StatusCode::kDataLoss));
  EXPECT_TRUE(raw_->WaitForEnd());
}

TEST_P(PeerMovesTest, APeerThatDoesNotLetItselfBeMovedIsNotAsked) {
  ASSERT_NO_FATAL_FAILURE(OpenServer(PeerMoves::kRefused));
  ASSERT_NO_FATAL_FAILURE(Shake(kKnowsToken));
  const OpId move = server_.Accepted(server_.socket.Suspend(server_.Args()));
  EXPECT_TRUE(
      Refuses(End(server_, move).status(), ErrorKind::kUnsupported, StatusCode::kUnimplemented));
  raw_->Write(SendFrame(SdpMessage(kData, 2, Octets(5)), 2));
  EXPECT_TRUE(End(server_, receive_).ok()) << "the connection is as it was";
}

TEST_P(PeerMovesTest, AServerIsNotLedToAListenerOfItsOwn) { ExpectNotLed(0); }
TEST_P(PeerMovesTest, NorIsItWhereItShowsAToken) { ExpectNotLed(kKnowsToken); }

TEST_P(PeerMovesTest, WhoComesBackWithoutTheTokenIsNotThePeer) {
  ASSERT_NO_FATAL_FAILURE(OpenServer(PeerMoves::kGuarded));
  ASSERT_NO_FATAL_FAILURE(Shake(kKnowsToken | kMayBeMoved));
  const OpId move = server_.Accepted(server_.socket.Suspend(server_.Args()));
  const uint16_t port = ReadSuspComm();
  ASSERT_NE(port, 0);
  auto early_thief = Raw(port, Return(/*with_token=*/false));
  auto peer = Raw(port, Return(/*with_token=*/true));
  raw_->Write(SendFrame(SdpMessage(kSuspCommAck, 2), 2));
  Settle();
  EXPECT_EQ(peer->taken().size(), 0u) << "the old queue pair is not gone yet";
  raw_->EndWrites();
  // Its port is gone as soon as the peer is back.
  auto late_thief = RawUnlessRefused(port, Return(/*with_token=*/false));
  ASSERT_GE(peer->Read(kHandshake).size(), kHandshake);
  EXPECT_TRUE(std::equal(peer->taken().begin() + kBeforeHelloAck + 24,
                         peer->taken().begin() + kBeforeHelloAck + 40,
                         raw_->taken().begin() + kBeforeHelloAck + 24))
      << "the token stays that of the connection";
  peer->Write(SendFrame(SdpMessage(kData, 1, Octets(5)), 1));
  EXPECT_TRUE(End(server_, move).ok());
  EndWell(server_, receive_, 5);
  EXPECT_TRUE(late_thief == nullptr || late_thief->WaitForEnd());
  EXPECT_TRUE(early_thief->WaitForEnd());
  EXPECT_GE(server_.socket.Stats().returns_rejected, 1u);
  EXPECT_EQ(server_.socket.Stats().resumptions, 1u);
  EXPECT_NE(log_.find("return token"), std::string::npos) << log_;
}

TEST_P(PeerMovesTest, APeerThatMovesTooOftenIsCutOff) {
  ASSERT_NO_FATAL_FAILURE(OpenServer(PeerMoves::kGuarded, /*moves_max=*/2));
  ASSERT_NO_FATAL_FAILURE(Connect());
  receive_ = server_.Recv(Make(server_, 100).All());
  for (int i = 0; i < 10 && server_.Find(receive_) == nullptr; ++i) {
    const absl::StatusOr<OpId> suspend = client_.socket.Suspend(client_.Args());
    if (!suspend.ok()) break;  // the client may learn of the end before the server's event comes
    (void)End(client_, client_.Accepted(suspend));
    ASSERT_TRUE(Pump([&] {
      return server_.Find(receive_) != nullptr ||
             client_.socket.Stats().resumptions == server_.socket.Stats().resumptions;
    }));
  }
  EXPECT_TRUE(
      Refuses(End(server_, receive_).status(), ErrorKind::kPeerProtocol, StatusCode::kDataLoss));
  EXPECT_GE(server_.socket.Stats().resumptions, 2u);
}

}  // namespace
}  // namespace esdp::contract
