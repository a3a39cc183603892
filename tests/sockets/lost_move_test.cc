#include <memory>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// Peers that die, or say no more, while the connection has no queue pair.

namespace esdp::contract {
namespace {

using absl::StatusCode;

constexpr uint8_t kSrcAvail = 0xfe;
constexpr uint8_t kSuspComm = 0x0d;
constexpr uint8_t kSuspCommAck = 0x0e;
constexpr size_t kHandshake = 20 + 4 + 196;  // MPA reply, depths, HelloAck

class LostMoveTest : public PairTest {
 protected:
  // The server's socket is connected to a hand-made peer that takes part in everything.
  void Shake() {
    raw_ = std::make_unique<RawStream>(
        [this](const std::function<bool()>& done) { return Pump(done); });
    const Address address = Listen();
    const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
    ASSERT_TRUE(raw_->Connect(address.port()));
    Octets hello = HonestHello();
    hello[19] = 16;  // MaxAdverts
    raw_->Write(MpaRequest(hello));
    ASSERT_GE(raw_->Read(kHandshake).size(), kHandshake);
    const Event event = End(server_, accept);
    server_.socket = *server_.context.TakeAccepted(event.accepted);
    raw_->Write(SendFrame(SdpMessage(0xff, 1), 1));  // Data without payload: it speaks first
  }
  void ShakeAndReceive() {
    ASSERT_NO_FATAL_FAILURE(Shake());
    receive_ = server_.Recv(Make(server_, 100).All());
  }
  void AskToFollow(uint16_t port) {
    Octets service(8);
    Put(service, 4, 0x10000u | port, 4);
    raw_->Write(SendFrame(SdpMessage(kSuspComm, 2, service), 2));
  }
  OpId SuspendFor(absl::Duration most) {
    OpArgs args = server_.Args();
    args.deadline = server_.context.Now() + most;
    return server_.Accepted(server_.socket.Suspend(args));
  }
  void ExpectBothEnd(OpId move, ErrorKind kind, StatusCode code) {
    EXPECT_TRUE(Refuses(End(server_, move).status(), kind, code));
    EXPECT_TRUE(Refuses(End(server_, receive_).status(), kind, code));
    ExpectEnded(kind);
  }
  // At once or, where the last word on the connection is still to come, by its event.
  void ExpectEnded(ErrorKind cause) {
    const auto posted = server_.socket.Suspend(server_.Args());
    const absl::Status status =
        posted.ok() ? End(server_, server_.Accepted(posted)).status() : posted.status();
    EXPECT_EQ(KindOf(status), cause) << status;
  }
  // The peer leaves one credit: not enough for a message that gives none. It has advertised bytes,
  // and been asked for them as Data.
  void TakeCredits() {
    Octets advert(17);
    Put(advert, 0, 10'000, 4);  // SrcAvail, with a byte of payload
    Octets message = SdpMessage(kSrcAvail, 2, advert);
    message[3] = 3;  // Bufs
    OpArgs copied = server_.Args();
    copied.path = Path::kCopy;
    const OpId send = server_.Send(Make(server_, 10).All(), copied);
    EndWell(server_, send, 10);
    receive_ = server_.Recv(Make(server_, 10'000).All(), RecvFlags::kWaitAll, copied);
    const size_t before = raw_->Read(kHandshake + 1).size();
    raw_->Write(SendFrame(message, 2));
    raw_->Read(before + 1);  // SendSm
  }
  // What the server has said, in bytes.
  size_t Said() { return raw_->Read(0).size(); }

  std::unique_ptr<RawStream> raw_;
  OpId receive_ = OpId::kNone;
};
ESDP_ON_TCP_WORLDS(LostMoveTest);

TEST_P(LostMoveTest, APeerThatDiesBehindItsAnswerIsSilentAtTheDeadline) {
  ASSERT_NO_FATAL_FAILURE(ShakeAndReceive());
  const absl::Time begun = server_.context.Now();
  const OpId move = SuspendFor(absl::Milliseconds(700));
  raw_->Read(kHandshake + 1);
  raw_->Write(SendFrame(SdpMessage(kSuspCommAck, 2), 2));
  raw_->EndWrites();
  ExpectBothEnd(move, ErrorKind::kPeerSilent, StatusCode::kUnavailable);
  EXPECT_GE(server_.context.Now() - begun, absl::Milliseconds(700));
  EXPECT_LE(server_.context.Now() - begun, absl::Seconds(10));
}

TEST_P(LostMoveTest, APeerThatDoesNotAnswerIsSilentAtTheDeadline) {
  ASSERT_NO_FATAL_FAILURE(ShakeAndReceive());
  const OpId move = SuspendFor(absl::Milliseconds(300));
  ExpectBothEnd(move, ErrorKind::kPeerSilent, StatusCode::kUnavailable);
}

TEST_P(LostMoveTest, APeerThatDiesBeforeItsAnswerIsAReset) {
  ASSERT_NO_FATAL_FAILURE(ShakeAndReceive());
  const OpId move = SuspendFor(absl::Seconds(30));
  raw_->Read(kHandshake + 1);
  raw_->Reset();
  ExpectBothEnd(move, ErrorKind::kPeerReset, StatusCode::kAborted);
}

TEST_P(LostMoveTest, APeerThatAsksAndIsGoneWhenItIsFollowedIsAReset) {
  ASSERT_NO_FATAL_FAILURE(ShakeAndReceive());
  AskToFollow(1);  // nobody listens
  EXPECT_TRUE(raw_->WaitForEnd());
  raw_->Close();
  const Event event = End(server_, receive_);
  EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerReset, StatusCode::kAborted));
}

// The system closes all that a killed process had: what listened refuses, what was accepted is
// reset.
TEST_P(LostMoveTest, APeerThatAsksAndDiesWhileItIsFollowedIsAResetAtOnce) {
  for (const bool accepts : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(ShakeAndReceive());
    RawStream next([this](const std::function<bool()>& done) { return Pump(done); });
    const uint16_t port = next.Listen();
    ASSERT_NE(port, 0);
    if (!accepts) next.Close();
    AskToFollow(port);
    EXPECT_TRUE(raw_->WaitForEnd());
    raw_->Close();
    if (accepts) {
      ASSERT_TRUE(next.Accept());
      EXPECT_FALSE(next.Read(1).empty()) << "the request";
      next.Reset();
    }
    const Event event = End(server_, receive_);
    EXPECT_TRUE(Refuses(event.status(), ErrorKind::kPeerReset, StatusCode::kAborted)) << accepts;
    ExpectEnded(ErrorKind::kPeerReset);
  }
}

TEST_P(LostMoveTest, AMoveThatCannotBeginIsLateOrCancelledAndNothingHasChanged) {
  ASSERT_NO_FATAL_FAILURE(Shake());
  TakeCredits();
  const size_t said = Said();
  const Event late = End(server_, SuspendFor(absl::Milliseconds(50)));
  EXPECT_TRUE(Refuses(late.status(), ErrorKind::kDeadlineExceeded, StatusCode::kDeadlineExceeded));
  const OpId move = SuspendFor(absl::InfiniteDuration());
  EXPECT_TRUE(Refuses(server_.socket.Suspend(server_.Args()), ErrorKind::kBusy,
                      StatusCode::kFailedPrecondition));
  EXPECT_TRUE(server_.socket.Cancel(move).ok());
  const Event cancelled = End(server_, move);
  EXPECT_TRUE(Refuses(cancelled.status(), ErrorKind::kCancelled, StatusCode::kCancelled));
  EXPECT_EQ(Said(), said) << "the peer hears of neither";

  raw_->Write(SendFrame(SdpMessage(0xff, 3, Octets(9'999)), 3));
  EndWell(server_, receive_, 10'000);
}

TEST_P(LostMoveTest, AMoveThatWaitsBeginsWhenThePeerMakesRoom) {
  ASSERT_NO_FATAL_FAILURE(Shake());
  TakeCredits();
  const size_t said = Said();
  const OpId move = SuspendFor(absl::Seconds(30));
  raw_->Write(SendFrame(SdpMessage(0xff, 3), 3));
  EXPECT_GE(raw_->Read(said + 1).size(), said + 1) << "SuspComm";
  (void)server_.socket.Cancel(move);  // too late
  raw_->Reset();
  ExpectBothEnd(move, ErrorKind::kPeerReset, StatusCode::kAborted);
}

TEST_P(LostMoveTest, AnAbortEndsAMoveThatWaitsBeforeItsSocket) {
  ASSERT_NO_FATAL_FAILURE(Shake());
  TakeCredits();
  const OpId move = SuspendFor(absl::InfiniteDuration());
  const OpId close = server_.Close(CloseMode::kAbort);
  EXPECT_TRUE(Refuses(End(server_, move).status(), ErrorKind::kLocalAbort, StatusCode::kAborted));
  EXPECT_TRUE(End(server_, close).ok());
}

}  // namespace
}  // namespace esdp::contract
