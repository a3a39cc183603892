#include "impl/sdp/lifecycle/suspend.h"

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "tests/sdp/solo.h"

// One core against a peer that suspends, or is suspended, well or badly.

namespace esdp::sdp::testing {
namespace {

constexpr OperationId kMove{900};
constexpr uint16_t kPort = 4711;

AskReceive Placeable() {
  AskReceive receive;
  receive.placeable = true;
  receive.zcopy_min = 0;
  return receive;
}

class SuspendTest : public ::testing::Test {
 protected:
  static Config ConfigOf(bool connecting) {
    Config config;
    config.connecting = connecting;
    config.receive_buffers = 8;
    config.receive_buffer_bytes = 1040;
    return config;
  }
  static Solo::Peer Able() {
    Solo::Peer peer;
    peer.max_adverts = 16;
    return peer;
  }
  void Establish(bool connecting = true) {
    solo_.emplace(ConfigOf(connecting));
    solo_->Establish(Able());
  }
  void Ask(Time until = kTimeInfinite) { solo_->Step(AskSuspend{kMove, kPort, until}); }
  // Up to the phase in which the core waits for its peer's return.
  void Suspend() {
    Establish();
    Ask();
    solo_->Arrive(wire::SuspCommAck{});
    solo_->Step(ConnectionLost{true, false});
  }
  wire::Message Return() { return solo_->PeerHello(Able()); }
  Phase phase() { return solo_->core().phase(); }
  Outcome Result() const {
    const auto result = solo_->Result(kMove);
    return result ? result->outcome : Outcome::kInternal;
  }
  void ExpectFailure(Outcome cause, const std::string& reason) {
    const auto ends = Solo::Of<Disconnect>(solo_->all());
    ASSERT_FALSE(ends.empty());
    EXPECT_EQ(ends.back().cause, cause);
    EXPECT_EQ(ends.back().reason, reason);
  }
  std::optional<Solo> solo_;
};

// R12.1, R12.2
TEST_F(SuspendTest, SuspCommNamesThePortAndNothingFollowsIt) {
  Establish();
  Ask();
  const auto sent = solo_->Sent<wire::SuspComm>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(std::get<wire::SuspComm>(sent[0].message.body).service_id, 0x10000u | kPort);
  solo_->Send(100);
  EXPECT_TRUE(solo_->Last<sdp::Send>().empty());
  EXPECT_EQ(phase(), Phase::kSuspending);
}

TEST_F(SuspendTest, APeerThatHoldsOneAdvertIsNeverAsked) {
  solo_.emplace(ConfigOf(true));
  solo_->Establish();
  Ask();
  EXPECT_EQ(Result(), Outcome::kUnsupported);
  EXPECT_TRUE(Solo::Of<sdp::Send>(solo_->all()).empty());
  EXPECT_EQ(phase(), Phase::kEstablished);
}

TEST_F(SuspendTest, APeerThatHoldsOneAdvertIsAnswered) {
  solo_.emplace(ConfigOf(true));
  solo_->Establish();
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  EXPECT_EQ(solo_->Sent<wire::SuspCommAck>().size(), 1u);
}

// R12.3, R12.4
TEST_F(SuspendTest, TheResponderEndsTheQueuePairWhenItsAnswerHasLeft) {
  Establish(false);
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  EXPECT_TRUE(solo_->Last<Disconnect>().empty());
  solo_->FinishSends();
  ASSERT_EQ(solo_->Last<Disconnect>().size(), 1u);
  EXPECT_TRUE(solo_->Last<Disconnect>()[0].orderly);
  solo_->Step(ConnectionLost{true, false});
  EXPECT_EQ(solo_->Last<ReplaceQueuePair>().size(), 1u);
  EXPECT_EQ(solo_->Last<PostReceive>().size(), 8u);
  ASSERT_EQ(solo_->Last<StartConnect>().size(), 1u);
  EXPECT_EQ(solo_->Last<StartConnect>()[0].port, kPort);
}

TEST_F(SuspendTest, AResponderThatHasAnotherWayTriesItWithAnotherQueuePair) {
  Establish(false);
  const OperationId receive = solo_->Receive(500);
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  solo_->FinishSends();
  solo_->Step(ConnectionLost{true, false});
  const wire::Message hello = solo_->Last<StartConnect>()[0].hello;
  for (int i = 0; i < 3; ++i) {
    solo_->Step(ConnectFailed{.another_way = true});
    EXPECT_EQ(phase(), Phase::kResuming);
    EXPECT_EQ(solo_->Last<ReplaceQueuePair>().size(), 1u);
    EXPECT_EQ(solo_->Last<PostReceive>().size(), 8u) << "those of the one before are gone with it";
    ASSERT_EQ(solo_->Last<StartConnect>().size(), 1u);
    EXPECT_EQ(solo_->Last<StartConnect>()[0].port, kPort);
    EXPECT_EQ(solo_->Last<StartConnect>()[0].hello, hello);
  }
  EXPECT_FALSE(solo_->Result(receive));
  solo_->Step(ConnectFailed{});
  ASSERT_TRUE(solo_->Result(receive));
  EXPECT_EQ(solo_->Result(receive)->outcome, Outcome::kResumeFailed);
}

TEST_F(SuspendTest, AnInitiatorThatCouldNotTakeItsPeerBackWaitsForItOnceMore) {
  Suspend();
  solo_->Step(HelloArrived{Return()});
  ASSERT_EQ(solo_->Last<AcceptConnection>().size(), 1u);
  solo_->Step(ConnectFailed{.another_way = true});
  EXPECT_EQ(phase(), Phase::kResuming);
  EXPECT_EQ(solo_->Last<AwaitHello>().size(), 1u);
  solo_->Step(HelloArrived{Return()});
  EXPECT_EQ(solo_->Last<ReplaceQueuePair>().size(), 1u);
  EXPECT_EQ(solo_->Last<PostReceive>().size(), 8u);
  EXPECT_EQ(solo_->Last<AcceptConnection>().size(), 1u);
  solo_->Step(ConnectFailed{});
  EXPECT_EQ(Result(), Outcome::kResumeFailed);
}

// R12.3
TEST_F(SuspendTest, AReadThatRunsIsReportedBeforeTheAnswer) {
  Establish();
  solo_->Receive(500, Placeable());
  solo_->Arrive(wire::SrcAvail{500, 1, 0x1000}, 1);
  ASSERT_EQ(solo_->Last<Read>().size(), 1u);
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  EXPECT_TRUE(solo_->Sent<wire::SuspCommAck>().empty());
  solo_->Step(ReadFinished{});
  EXPECT_EQ(solo_->Sent<wire::RdmaRdCompl>().size(), 1u);
  EXPECT_EQ(solo_->Sent<wire::SuspCommAck>().size(), 1u);
}

TEST_F(SuspendTest, AnAdvertBehindSuspCommGivesItsInlineBytesAlone) {
  Establish();
  const OperationId receive = solo_->Receive(500, Placeable());
  Ask();
  solo_->Arrive(wire::SrcAvail{500, 1, 0x1000}, 1);
  EXPECT_TRUE(Solo::Of<Read>(solo_->all()).empty());
  solo_->Arrive(wire::SuspCommAck{});
  solo_->Step(ConnectionLost{true, false});
  ASSERT_TRUE(solo_->Result(receive));
  EXPECT_EQ(solo_->Result(receive)->bytes, 1u);
}

TEST_F(SuspendTest, ASecondSuspCommBreaksTheProtocol) {
  Establish();
  solo_->Receive(500, Placeable());
  solo_->Arrive(wire::SrcAvail{500, 1, 0x1000}, 1);  // its read keeps the answer back
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  ExpectFailure(Outcome::kPeerProtocol, "SuspComm: a second one, or for port 0");
}

TEST_F(SuspendTest, SuspCommForPort0BreaksTheProtocol) {
  Establish();
  solo_->Arrive(wire::SuspComm{0x10000u});
  ExpectFailure(Outcome::kPeerProtocol, "SuspComm: a second one, or for port 0");
}

// R12.2
TEST_F(SuspendTest, UserBytesBehindSuspCommBreakTheProtocol) {
  for (const bool answered : {false, true}) {
    Establish();
    if (!answered) {
      solo_->Receive(500, Placeable());
      solo_->Arrive(wire::SrcAvail{500, 1, 0x1000}, 1);
    }
    solo_->Arrive(wire::SuspComm{0x10000u | kPort});
    EXPECT_EQ(phase(), answered ? Phase::kSuspended : Phase::kSuspending);
    solo_->Arrive(wire::Data{}, 5);
    ExpectFailure(Outcome::kPeerProtocol, "a message behind SuspComm");
  }
}

// R12.9
TEST_F(SuspendTest, SuspCommAckThatNobodyAskedForIsIgnored) {
  Establish();
  solo_->Arrive(wire::SuspCommAck{});
  EXPECT_EQ(phase(), Phase::kEstablished);
  solo_->Send(100);
  EXPECT_EQ(solo_->Sent<wire::Data>().size(), 1u);
}

// R12.5
TEST_F(SuspendTest, AHelloFromSomewhereElseIsRejectedAndTheRightOneStillTaken) {
  solo_.emplace(ConfigOf(true));
  solo_->Step(AskConnect{});
  Established established;
  established.hello_ack = solo_->PeerHelloAck(Able());
  established.addresses = {.local_port = 77, .peer_port = 88, .local = {1}, .peer = {2}};
  solo_->Step(established);
  Ask();
  solo_->Arrive(wire::SuspCommAck{});
  solo_->Step(ConnectionLost{true, false});
  ASSERT_EQ(solo_->Last<AwaitHello>().size(), 1u);
  wire::Message right = Return();
  auto& hello = std::get<wire::Hello>(right.body);
  hello.local_port = 88;
  hello.source_address = {2};
  hello.destination_address = {1};
  for (int fault = 0; fault < 4; ++fault) {
    wire::Message wrong = right;
    auto& bad = std::get<wire::Hello>(wrong.body);
    if (fault == 0) bad.local_port = 77;
    if (fault == 1) bad.source_address = {3};
    if (fault == 2) bad.destination_address = {2};
    if (fault == 3) bad.local_receive_size = 1000;
    solo_->Step(HelloArrived{wrong});
    EXPECT_EQ(solo_->Last<RejectConnection>().size(), 1u) << fault;
    EXPECT_EQ(phase(), Phase::kResuming);
  }
  solo_->Step(HelloArrived{right});
  EXPECT_EQ(solo_->Last<AcceptConnection>().size(), 1u);
  solo_->Step(HelloArrived{right});
  EXPECT_EQ(solo_->Last<RejectConnection>().size(), 1u);
  solo_->Step(Established{});
  EXPECT_EQ(Result(), Outcome::kDone);
  EXPECT_EQ(phase(), Phase::kEstablished);
}

// R12.10
TEST_F(SuspendTest, OfTwoThatComeBackTheOneWithTheTokenIsThePeer) {
  Config config = ConfigOf(false);
  config.return_token = {1, 2, 3};
  solo_.emplace(config);
  Solo::Peer peer = Able();
  peer.capabilities = wire::kCapabilityReturnToken | wire::kCapabilityMayBeMoved;
  solo_->Establish(peer);
  Ask();
  solo_->Arrive(wire::SuspCommAck{});
  solo_->Step(ConnectionLost{true, false});
  wire::Message right = solo_->PeerHello(peer);
  std::get<wire::Hello>(right.body).return_token = {1, 2, 3};
  for (const wire::ReturnToken& wrong : {wire::ReturnToken{}, wire::ReturnToken{1, 2, 3, 4}}) {
    wire::Message hello = right;
    std::get<wire::Hello>(hello.body).return_token = wrong;
    EXPECT_STREQ(solo_->core().CheckResumption(hello), "return token: not that of the connection");
    solo_->Step(HelloArrived{hello});
    EXPECT_EQ(solo_->Last<RejectConnection>().size(), 1u);
  }
  solo_->Step(HelloArrived{right});
  EXPECT_EQ(solo_->Last<AcceptConnection>().size(), 1u);
}

// R12.10
TEST_F(SuspendTest, WhoFollowsShowsTheTokenThatTheHelloAckGave) {
  solo_.emplace(ConfigOf(true));
  solo_->Step(AskConnect{});
  Solo::Peer peer = Able();
  peer.capabilities = wire::kCapabilityReturnToken;
  Established established;
  established.hello_ack = solo_->PeerHelloAck(peer);
  std::get<wire::HelloAck>(established.hello_ack->body).return_token = {9, 8, 7};
  solo_->Step(established);
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  solo_->Step(SendFinished{});
  solo_->Step(ConnectionLost{true, false});
  const auto started = Solo::Of<StartConnect>(solo_->all());
  ASSERT_EQ(started.size(), 2u);
  const auto token = [&](size_t index) {
    return std::get<wire::Hello>(started[index].hello.body).return_token;
  };
  EXPECT_EQ(token(0), wire::ReturnToken{}) << "shown to a stranger";
  EXPECT_EQ(token(1), (wire::ReturnToken{9, 8, 7}));
  EXPECT_EQ(started[1].port, kPort);
}

// R12.11
TEST_F(SuspendTest, APeerThatIsNotToBeMovedIsNeverAsked) {
  for (const bool knows_token : {false, true}) {
    Config config = ConfigOf(false);
    config.return_token = {1};
    config.peer_moves = PeerMoves::kGuarded;
    solo_.emplace(config);
    Solo::Peer peer = Able();
    peer.capabilities = knows_token ? wire::kCapabilityReturnToken : uint8_t{0};
    solo_->Establish(peer);
    Ask();
    EXPECT_EQ(Result(), Outcome::kUnsupported);
    EXPECT_TRUE(Solo::Of<sdp::Send>(solo_->all()).empty());
  }
}

// R12.11
TEST_F(SuspendTest, ASideThatIsNotToBeMovedEndsTheConnectionOverSuspComm) {
  struct Case {
    PeerMoves moves;
    uint8_t capabilities;
    const char* reason;
  };
  for (const Case& one :
       {Case{PeerMoves::kRefused, wire::kCapabilityReturnToken,
             "SuspComm: this side is not to be moved"},
        Case{PeerMoves::kGuarded, 0, "SuspComm: from a peer that knows no return token"}}) {
    Config config = ConfigOf(false);
    config.return_token = {1};
    config.peer_moves = one.moves;
    solo_.emplace(config);
    Solo::Peer peer = Able();
    peer.capabilities = one.capabilities;
    solo_->Establish(peer);
    solo_->Arrive(wire::SuspComm{0x10000u | kPort});
    ExpectFailure(Outcome::kPeerProtocol, one.reason);
  }
}

// R12.11
TEST_F(SuspendTest, WhetherThisSideMayBeMovedIsSaidInTheHandshake) {
  for (const PeerMoves moves : {PeerMoves::kRefused, PeerMoves::kGuarded, PeerMoves::kUnguarded}) {
    Config config = ConfigOf(true);
    config.peer_moves = moves;
    const uint8_t told = moves == PeerMoves::kRefused ? 0 : wire::kCapabilityMayBeMoved;
    const auto mask = [](uint8_t capabilities) {
      return capabilities & wire::kCapabilityMayBeMoved;
    };
    EXPECT_EQ(mask(std::get<wire::Hello>(MakeHello(config, 5).body).capabilities), told);
    EXPECT_EQ(mask(std::get<wire::HelloAck>(MakeHelloAck(config, 5, {}).body).capabilities), told);
  }
}

// R12.6
TEST_F(SuspendTest, SequenceNumbersAndCreditsStartAnew) {
  Establish();
  solo_->Send(100);
  Ask();
  solo_->Arrive(wire::SuspCommAck{});
  solo_->Step(ConnectionLost{true, false});
  wire::Message hello = Return();
  hello.base.buffers = 4;
  solo_->Step(HelloArrived{hello});
  solo_->Step(Established{});
  solo_->Send(100);
  solo_->Send(100);
  ASSERT_FALSE(Solo::Of<sdp::Send>(solo_->all()).empty());
  const wire::BaseHeader last = Solo::Of<sdp::Send>(solo_->all()).back().message.base;
  EXPECT_EQ(last.sequence, 1u);
  EXPECT_EQ(last.acknowledged, 0u);
}

TEST_F(SuspendTest, AModeThatWasWantedIsWantedOnTheNewQueuePairToo) {
  Establish();
  solo_->Step(AskMode{ModeWish::kPipelined, ModeWish::kAutomatic});
  ASSERT_EQ(solo_->Sent<wire::ModeChange>().size(), 1u);
  Ask();
  solo_->Arrive(wire::SuspCommAck{});
  solo_->Step(ConnectionLost{true, false});
  solo_->Step(HelloArrived{Return()});
  solo_->Step(Established{});

  EXPECT_EQ(solo_->Sent<wire::ModeChange>().size(), 1u);
}

TEST_F(SuspendTest, AMoveThatCannotBeginInTimeLeavesTheConnectionAsItWas) {
  Establish();
  solo_->TellBuffers(1);
  solo_->Arrive(wire::Data{}, 5);  // no credit for SuspComm
  Ask(solo_->now + std::chrono::seconds(2));
  ASSERT_TRUE(solo_->Sent<wire::SuspComm>().empty());
  solo_->now += std::chrono::seconds(2);
  solo_->Step(TimerFired{Timer::kSuspend});
  EXPECT_EQ(Result(), Outcome::kDeadlineExceeded);
  EXPECT_EQ(phase(), Phase::kEstablished);
  EXPECT_TRUE(Solo::Of<Disconnect>(solo_->all()).empty());
}

TEST_F(SuspendTest, APeerThatNeverAnswersOrNeverComesBackEndsTheConnection) {
  for (const bool answers : {false, true}) {
    Establish();
    Ask(solo_->now + std::chrono::seconds(5));
    if (answers) {
      solo_->Arrive(wire::SuspCommAck{});
      solo_->Step(ConnectionLost{true, false});
    }
    solo_->now += std::chrono::seconds(5);
    solo_->Step(TimerFired{Timer::kSuspend});
    ExpectFailure(Outcome::kResumeFailed, answers ? "the peer did not come back in time"
                                                  : "SuspComm was not answered in time");
    solo_->Step(ConnectionLost{true, false});
    EXPECT_EQ(Result(), Outcome::kResumeFailed);
    EXPECT_EQ(phase(), Phase::kClosed);
  }
}

TEST_F(SuspendTest, AMoveCanBeTakenBackOnlyBeforeThePeerIsTold) {
  Establish();
  solo_->TellBuffers(1);
  solo_->Arrive(wire::Data{}, 5);
  Ask();
  solo_->Step(AskCancel{kMove, CancelMode::kIfNotStarted, Outcome::kCancelled});
  EXPECT_EQ(Result(), Outcome::kCancelled);
  Establish();
  Ask();
  solo_->Step(AskCancel{kMove, CancelMode::kIfNotStarted, Outcome::kCancelled});
  EXPECT_FALSE(solo_->Result(kMove));
}

TEST_F(SuspendTest, ALossBeforeTheAnswerIsAResetAndNotAMove) {
  Establish();
  Ask();
  solo_->Step(ConnectionLost{true, false});
  EXPECT_EQ(Result(), Outcome::kPeerReset);
  EXPECT_EQ(phase(), Phase::kClosed);
}

TEST_F(SuspendTest, APeerThatBreaksOffBehindItsAnswerEndsTheConnection) {
  Establish();
  Ask();
  solo_->Arrive(wire::SuspCommAck{});
  solo_->Step(ConnectionLost{.reset = true});
  EXPECT_EQ(Result(), Outcome::kPeerReset);
  EXPECT_EQ(phase(), Phase::kClosed);
}

// The peer waits on its port, with or without the old queue pair.
TEST_F(SuspendTest, AnAbortWhileThePeerWaitsComesBackToSaySo) {
  for (const bool on_old_queue_pair : {true, false}) {
    Establish(false);
    const OperationId receive = solo_->Receive(10);
    solo_->Arrive(wire::SuspComm{0x10000u | kPort});
    solo_->FinishSends();
    if (!on_old_queue_pair) solo_->Step(ConnectionLost{true, false});
    solo_->Step(AskClose{OperationId{91}, true});
    solo_->Step(ConnectionLost{true, false});
    EXPECT_EQ(solo_->Result(receive)->outcome, Outcome::kLocalAbort);
    ASSERT_EQ(solo_->Last<Farewell>().size(), 1u);
    const Farewell farewell = solo_->Last<Farewell>()[0];
    EXPECT_EQ(farewell.port, kPort);
    EXPECT_GE(farewell.hello.base.buffers, 3u) << "or it would be rejected";
    EXPECT_EQ(phase(), Phase::kClosed);
  }
}

TEST_F(SuspendTest, WhoeverWaitsForThePeerComesBackToNobody) {
  Suspend();
  solo_->Step(AskClose{OperationId{91}, true});
  solo_->Step(ConnectionLost{true, false});
  EXPECT_EQ(Solo::Of<Farewell>(solo_->all()).size(), 0u);
  EXPECT_EQ(phase(), Phase::kClosed);
}

TEST_F(SuspendTest, APeerThatCannotBeReachedAnewEndsTheConnection) {
  Establish();
  const OperationId receive = solo_->Receive(10);
  solo_->Arrive(wire::SuspComm{0x10000u | kPort});
  solo_->FinishSends();
  solo_->Step(ConnectionLost{true, false});
  solo_->Step(ConnectFailed{});
  EXPECT_EQ(solo_->Result(receive)->outcome, Outcome::kResumeFailed);
  EXPECT_EQ(phase(), Phase::kClosed);
}

TEST_F(SuspendTest, AnAbortWhileThereIsNoQueuePairEndsEverything) {
  Suspend();
  const OperationId receive = solo_->Receive(10);
  solo_->Step(AskClose{OperationId{901}, true});
  ASSERT_EQ(solo_->Last<Disconnect>().size(), 1u);
  solo_->Step(ConnectionLost{true, false});
  EXPECT_EQ(solo_->Result(receive)->outcome, Outcome::kLocalAbort);
  EXPECT_EQ(Result(), Outcome::kLocalAbort);
  EXPECT_TRUE(solo_->core().closed());
}

TEST_F(SuspendTest, BothDisConnsAcrossSuspCommEndTheConnectionInOrder) {
  Establish();
  solo_->Step(AskShutdown{OperationId{902}});
  solo_->FinishSends();
  Ask();
  ASSERT_EQ(phase(), Phase::kSuspending);
  solo_->Arrive(wire::DisConn{});
  EXPECT_EQ(phase(), Phase::kTimeWait);
  solo_->Step(ConnectionLost{true, false});
  EXPECT_EQ(Result(), Outcome::kShutDown);
}

TEST_F(SuspendTest, APeerWithoutCreditsIsGivenSomeBehindSuspComm) {
  Establish();
  Ask();
  // Everything it may still send but the last two, all of it for a reader that does not read.
  for (int i = 0; i < 6; ++i) solo_->Arrive(wire::Data{}, 5);
  EXPECT_TRUE(solo_->Sent<wire::Data>().empty());
  solo_->Arrive(wire::Data{});
  solo_->Arrive(wire::Data{});
  EXPECT_FALSE(Solo::Of<sdp::Send>(solo_->all()).empty());
  const sdp::Send last = Solo::Of<sdp::Send>(solo_->all()).back();
  EXPECT_TRUE(std::holds_alternative<wire::Data>(last.message.body));
  EXPECT_GE(last.message.base.buffers, 2u);
}

// R12.12
TEST(SuspendPartTest, ThePeerMovesSoOftenAndOnceMoreEachSecond) {
  using std::chrono::milliseconds;
  esdp::sdp::Suspend part;
  Time now{std::chrono::seconds(5)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(part.TakeMove(now, 3)) << i;
  EXPECT_FALSE(part.TakeMove(now, 3));
  now += milliseconds(999);
  EXPECT_FALSE(part.TakeMove(now, 3));
  now += milliseconds(1);
  EXPECT_TRUE(part.TakeMove(now, 3));
  EXPECT_FALSE(part.TakeMove(now, 3));
  now += std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(part.TakeMove(now, 3)) << "no more than at first";
  EXPECT_FALSE(part.TakeMove(now, 3));
}

TEST(SuspendPartTest, AMoveThatIsLateSaysWhatItWaitedFor) {
  const Time until{std::chrono::seconds(5)};
  const Time before = until - std::chrono::nanoseconds(1);
  Actions actions;
  esdp::sdp::Suspend asked;
  ASSERT_TRUE(asked.OnSuspComm(wire::SuspComm{kPort}, true, until).responds);
  EXPECT_EQ(asked.OnTimer(Phase::kSuspending, before, actions), nullptr);
  EXPECT_STREQ(asked.OnTimer(Phase::kSuspending, until, actions),
               "SuspCommAck could not be sent in time");
  EXPECT_STREQ(asked.OnTimer(Phase::kSuspended, until, actions),
               "the old queue pair did not end in time");
  EXPECT_STREQ(asked.OnTimer(Phase::kResuming, until, actions),
               "the peer did not come back in time");
  esdp::sdp::Suspend asks;
  ASSERT_TRUE(asks.OnAsk({kMove, kPort, until}));
  (void)asks.TakeSuspComm();
  EXPECT_STREQ(asks.OnTimer(Phase::kSuspending, until, actions),
               "SuspComm was not answered in time");
  EXPECT_TRUE(actions.empty());
}

TEST(SuspendPartTest, AWishThatIsLateEndsAloneAndOneThatWaitsForASpareBufferHoldsNothingBack) {
  const Time until{std::chrono::seconds(5)};
  esdp::sdp::Suspend part;
  Actions actions;
  ASSERT_TRUE(part.OnAsk({kMove, kPort, until}));
  EXPECT_TRUE(part.GoesFirst(/*has_spare=*/true));
  EXPECT_FALSE(part.GoesFirst(/*has_spare=*/false));
  EXPECT_EQ(part.OnTimer(Phase::kEstablished, until, actions), nullptr);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(std::get<FinishOperation>(actions[0]).outcome, Outcome::kDeadlineExceeded);
  EXPECT_FALSE(part.freezes());
}

// R12.1
TEST(SuspendPartTest, AWishThatThePeerWasToldOfEndsOnceWithTheConnection) {
  esdp::sdp::Suspend part;
  Actions actions;
  ASSERT_TRUE(part.OnAsk({kMove, kPort, kTimeInfinite}));
  (void)part.TakeSuspComm();
  part.Finish(Outcome::kShutDown, actions);
  std::vector<Outcome> ends;
  for (const Action& action : actions) {
    if (const auto* end = std::get_if<FinishOperation>(&action)) ends.push_back(end->outcome);
  }
  EXPECT_EQ(ends, std::vector<Outcome>{Outcome::kShutDown});
}

}  // namespace
}  // namespace esdp::sdp::testing
