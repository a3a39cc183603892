#include <memory>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// Connecting to something that listens and is no good.

namespace esdp::contract {
namespace {

using absl::StatusCode;

class HostileListenerTest : public PairTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(PairTest::SetUp());
    raw_ = std::make_unique<RawStream>(
        [this](const std::function<bool()>& done) { return Pump(done); });
  }
  // Begins to connect, and hands over the other end.
  void Begin(absl::Duration patience = absl::Seconds(10)) {
    raw_->Close();
    const uint16_t port = raw_->Listen();
    ASSERT_NE(port, 0);
    client_.socket = *client_.context.CreateSocket(Family::kIpv4);
    OpArgs args = client_.Args();
    deadline_ = client_.context.Now() + patience;
    args.deadline = deadline_;
    connect_ =
        client_.Accepted(client_.socket.Connect(Address::Loopback(Family::kIpv4, port), args));
    ASSERT_TRUE(raw_->Accept());
  }
  // How the connect ends when it is answered so.
  Event Answer(const Octets& bytes) {
    Begin();
    EXPECT_GE(raw_->Read(116).size(), 116u) << "no whole request came";
    raw_->Write(bytes);
    return End(client_, connect_);
  }

  std::unique_ptr<RawStream> raw_;
  OpId connect_ = OpId::kNone;
  absl::Time deadline_;
};
ESDP_ON_TCP_WORLDS(HostileListenerTest);

TEST_P(HostileListenerTest, AHandMadeHonestListenerIsConnectedTo) {
  const Event event = Answer(MpaReply(HonestHelloAck()));
  EXPECT_TRUE(event.ok()) << event.status();
}

// R3.3.2, R25.1
TEST_P(HostileListenerTest, TheRequestIsTheOneOfTheStandard) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  const Octets request = raw_->Read(116);
  ASSERT_GE(request.size(), 116u);
  EXPECT_EQ(std::string(request.begin(), request.begin() + 16), "MPA ID Req Frame");
  EXPECT_EQ(request[16] & 0xa0, 0) << "no markers, no rejection";
  EXPECT_EQ(request[17], 2) << "revision";
  EXPECT_EQ(request[19], 96) << "depths and a whole Hello";
  EXPECT_EQ(request[24], 0) << "Hello";
  EXPECT_EQ(request[24 + 7], 92);
  EXPECT_EQ(request[24 + 16], 0x22) << "version 2.2";
  raw_->Reset();
  EXPECT_FALSE(End(client_, connect_).ok());
}

TEST_P(HostileListenerTest, GarbageInTheAnswerIsARefusedHandshake) {
  for (uint64_t seed = 1; seed < 5; ++seed) {
    const Event event = Answer(Garbage(seed, 500));
    EXPECT_TRUE(event.kind == ErrorKind::kHandshakeRefused ||
                event.kind == ErrorKind::kPeerProtocol)
        << event.status();
    EXPECT_TRUE(Refuses(event.status(), event.kind, StatusCode::kDataLoss));
    EXPECT_TRUE(raw_->WaitForEnd());
  }
}

TEST_P(HostileListenerTest, AListenerThatClosesIsToldAtOnce) {
  for (const bool reset : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Begin());
    (void)raw_->Read(116);
    reset ? raw_->Reset() : raw_->Close();
    const Event event = End(client_, connect_);
    EXPECT_FALSE(event.ok());
    EXPECT_NE(event.kind, ErrorKind::kDeadlineExceeded);
    EXPECT_NE(event.kind, ErrorKind::kInternal) << event.status();
    EXPECT_LT(client_.context.Now(), deadline_);
  }
}

TEST_P(HostileListenerTest, ASilentListenerIsGivenUpAtTheDeadline) {
  ASSERT_NO_FATAL_FAILURE(Begin(absl::Seconds(1)));
  const Event event = End(client_, connect_);
  EXPECT_TRUE(Refuses(event.status(), ErrorKind::kDeadlineExceeded, StatusCode::kDeadlineExceeded));
  EXPECT_GE(client_.context.Now(), deadline_);
  EXPECT_LT(client_.context.Now(), deadline_ + absl::Seconds(5));
  EXPECT_TRUE(raw_->WaitForEnd()) << "it is not left open";
}

TEST_P(HostileListenerTest, AnAnswerCutShortIsNotAConnection) {
  const Octets whole = MpaReply(HonestHelloAck());
  for (const size_t size : {1u, 15u, 19u, 20u, 24u, 40u, 219u}) {
    ASSERT_NO_FATAL_FAILURE(Begin());
    (void)raw_->Read(116);
    raw_->Write(Octets(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)));
    raw_->Close();
    const Event event = End(client_, connect_);
    EXPECT_FALSE(event.ok()) << size;
    EXPECT_NE(event.kind, ErrorKind::kInternal) << event.status();
  }
}

TEST_P(HostileListenerTest, ARejectionIsToldAsOne) {
  Octets reply = MpaReply({});
  reply[16] |= 0x20;
  const Event event = Answer(reply);
  EXPECT_TRUE(Refuses(event.status(), ErrorKind::kRejected, StatusCode::kUnavailable));
}

TEST_P(HostileListenerTest, AHelloAckThatLiesIsARefusedHandshake) {
  struct Lie {
    size_t at;
    uint64_t value;
    size_t size;
  };
  const std::vector<Lie> lies = {{0, 0, 1},   {0, 0xff, 1}, {4, 0, 4},
                                 {4, 195, 4}, {4, 197, 4},  {16, 0x32, 1},
                                 {16, 0, 1},  {20, 0, 4},   {20, 0xffffffff, 4}};
  for (const Lie& lie : lies) {
    Octets ack = HonestHelloAck();
    Put(ack, lie.at, lie.value, lie.size);
    const Event event = Answer(MpaReply(ack));
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kHandshakeRefused, StatusCode::kDataLoss))
        << "byte " << lie.at << " = " << lie.value;
  }
  for (const size_t size : {0u, 16u, 195u}) {
    Octets ack = HonestHelloAck();
    ack.resize(size);
    const Event event = Answer(MpaReply(ack));
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kHandshakeRefused, StatusCode::kDataLoss))
        << size;
  }
}

TEST_P(HostileListenerTest, AFailedConnectLeavesItsContextWorking) {
  for (int i = 0; i < 5; ++i) {
    const Event event = Answer(Garbage(7, 300));
    EXPECT_FALSE(event.ok());
  }
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(client_, Make(client_, 100'000), server_, Make(server_, 100'000), 100'000);
}

}  // namespace
}  // namespace esdp::contract
