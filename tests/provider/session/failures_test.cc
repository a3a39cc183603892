#include "impl/provider/session/failures.h"

#include "gtest/gtest.h"

namespace esdp::provider {
namespace {

using fabric::Cause;
using fabric::WorkStatus;
using sdp::Outcome;

Address Peer() {
  Address address;
  address.bytes[12] = 10;
  address.bytes[15] = 9;
  address.port = 5001;
  return address;
}

Failure Of(Outcome outcome, Cause cause, WorkStatus work = WorkStatus::kSuccess) {
  FailureDetails evidence;
  evidence.cause = cause;
  evidence.NoteWork(work);
  evidence.detail = "the system's words";
  return Explain(outcome, "", evidence, Peer());
}

TEST(FailuresTest, AFailedConnectSaysWhereToAndWhy) {
  const struct {
    Cause cause;
    EndReason ending;
    const char* words;
  } cases[] = {
      {Cause::kRefused, EndReason::kRefused, "nobody listens"},
      {Cause::kRejected, EndReason::kRejected, "rejected"},
      {Cause::kUnreachable, EndReason::kUnreachable, "no route"},
      {Cause::kTimedOut, EndReason::kConnectTimedOut, "deadline"},
      {Cause::kPeerReset, EndReason::kPeerReset, "broke off"},
      {Cause::kProtocol, EndReason::kPeerProtocol, "does not speak"},
      {Cause::kDevice, EndReason::kFabricFailed, "the fabric failed"},
  };
  for (const auto& one : cases) {
    const Failure failure = Of(Outcome::kConnectFailed, one.cause);
    EXPECT_EQ(failure.ending, one.ending) << failure.text;
    EXPECT_NE(failure.text.find(one.words), std::string::npos) << failure.text;
    EXPECT_NE(failure.text.find("10.0.0.9:5001"), std::string::npos) << failure.text;
    EXPECT_NE(failure.text.find("the system's words"), std::string::npos) << failure.text;
  }
}

TEST(FailuresTest, ALostConnectionIsExplainedByItsCause) {
  EXPECT_EQ(Of(Outcome::kPeerReset, Cause::kPeerReset).ending, EndReason::kPeerReset);
  EXPECT_EQ(Of(Outcome::kPeerReset, Cause::kPeerDisconnect).ending, EndReason::kPeerReset);
  EXPECT_EQ(Of(Outcome::kPeerReset, Cause::kPeerSilent).ending, EndReason::kPeerSilent);
  EXPECT_EQ(Of(Outcome::kFabricError, Cause::kProtocol).ending, EndReason::kPeerProtocol);
  EXPECT_EQ(Of(Outcome::kFabricError, Cause::kLocalAccess).ending, EndReason::kRemoteAccess);
  EXPECT_EQ(Of(Outcome::kFabricError, Cause::kDevice).ending, EndReason::kFabricFailed);
}

TEST(FailuresTest, AFailedWorkRequestTellsMoreThanTheEndItCaused) {
  EXPECT_EQ(Of(Outcome::kFabricError, Cause::kRemoteTerminate, WorkStatus::kRemoteAccess).ending,
            EndReason::kRemoteAccess);
  EXPECT_EQ(
      Of(Outcome::kFabricError, Cause::kRemoteTerminate, WorkStatus::kReceiverNotReady).ending,
      EndReason::kPeerProtocol);
  EXPECT_EQ(Of(Outcome::kFabricError, Cause::kDevice, WorkStatus::kLocalProtection).ending,
            EndReason::kFabricFailed);
}

TEST(FailuresTest, ARefusedCallIsToldAndNotTheEndThatThisSideMadeOfIt) {
  FailureDetails evidence;
  evidence.cause = Cause::kLocalDisconnect;
  evidence.detail = "disconnected by this side";
  evidence.NoteRefusal(absl::ResourceExhaustedError("the send queue is full"));
  const Failure failure = Explain(Outcome::kFabricError, "", evidence, Peer());
  EXPECT_EQ(failure.ending, EndReason::kFabricFailed);
  EXPECT_NE(failure.text.find("refused a call (the send queue is full)"), std::string::npos)
      << failure.text;
}

TEST(FailuresTest, APeersTerminateIsToldAsItsOwnWordAndNotAsAFaultOfTheFabric) {
  for (const WorkStatus work : {WorkStatus::kSuccess, WorkStatus::kRemoteOperation}) {
    const Failure failure = Of(Outcome::kFabricError, Cause::kRemoteTerminate, work);
    EXPECT_EQ(failure.ending, EndReason::kPeerReset) << failure.text;
    EXPECT_NE(failure.text.find("the peer ended the connection with Terminate: the system's words"),
              std::string::npos)
        << failure.text;
    EXPECT_EQ(failure.text.find("of ours"), std::string::npos) << failure.text;
  }
}

TEST(FailuresTest, ASetUpThatThePeerBeganIsToldAsSuch) {
  const struct {
    Outcome outcome;
    Cause cause;
    const char* words;
  } cases[] = {
      {Outcome::kConnectFailed, Cause::kPeerReset, "broke off"},
      {Outcome::kConnectFailed, Cause::kTimedOut, "not complete in time"},
      {Outcome::kConnectFailed, Cause::kProtocol, "the fabric's protocol"},
      {Outcome::kConnectFailed, Cause::kRemoteTerminate, "Terminate"},
      {Outcome::kConnectFailed, Cause::kDevice, "the fabric failed"},
      {Outcome::kHandshakeRefused, Cause::kNone, "refused: because"},
      {Outcome::kPeerReset, Cause::kPeerReset, "broke"},
  };
  for (const auto& one : cases) {
    FailureDetails evidence;
    evidence.cause = one.cause;
    evidence.detail = "the system's words";
    const Failure failure = Explain(one.outcome, "because", evidence, Peer(), SetUp::kIncoming);
    EXPECT_TRUE(failure.text.starts_with("set-up with 10.0.0.9:5001 failed: ")) << failure.text;
    EXPECT_NE(failure.text.find(one.words), std::string::npos) << failure.text;
  }
}

TEST(FailuresTest, TheFirstFailureThatIsNoFlushStays) {
  FailureDetails evidence;
  evidence.NoteWork(WorkStatus::kFlushed);
  evidence.NoteWork(WorkStatus::kRemoteAccess);
  evidence.NoteWork(WorkStatus::kTransport);
  EXPECT_EQ(evidence.work, WorkStatus::kRemoteAccess);
}

TEST(FailuresTest, TheRuleThatThePeerBrokeIsNamedWithItsField) {
  FailureDetails evidence;
  evidence.message_field = "SrcAvail.Len";
  const Failure failure = Explain(Outcome::kPeerProtocol, "is 0", evidence, Peer());
  EXPECT_EQ(failure.ending, EndReason::kPeerProtocol);
  EXPECT_NE(failure.text.find("SrcAvail.Len: is 0"), std::string::npos) << failure.text;
}

TEST(FailuresTest, EveryOutcomeOfAConnectionHasAnEndingAndAText) {
  for (int i = static_cast<int>(Outcome::kLocalAbort); i <= static_cast<int>(Outcome::kInternal);
       ++i) {
    const Outcome outcome = static_cast<Outcome>(i);
    const Failure failure = Explain(outcome, "because", {}, Peer());
    EXPECT_NE(failure.ending, EndReason::kOk) << i;
    EXPECT_FALSE(failure.text.empty()) << i;
    EXPECT_TRUE(IsOfConnection(outcome)) << i;
  }
  EXPECT_EQ(Explain(Outcome::kDone, "", {}, Peer()).ending, EndReason::kOk);
  EXPECT_FALSE(IsOfConnection(Outcome::kCancelled));
  EXPECT_EQ(EndingOfOperation(Outcome::kDeadlineExceeded), EndReason::kDeadlineExceeded);
}

TEST(FailuresTest, AnEndIsCleanOnlyWithoutAnyFailure) {
  FailureDetails evidence;
  evidence.cause = Cause::kPeerDisconnect;
  evidence.NoteWork(WorkStatus::kFlushed);
  EXPECT_TRUE(IsCleanEnd(evidence));
  EXPECT_FALSE(IsFabricError(evidence));
  evidence.NoteWork(WorkStatus::kRemoteAccess);
  EXPECT_FALSE(IsCleanEnd(evidence));
  EXPECT_TRUE(IsFabricError(evidence));
  evidence = FailureDetails{};
  evidence.cause = Cause::kPeerReset;
  EXPECT_FALSE(IsCleanEnd(evidence));
  EXPECT_FALSE(IsFabricError(evidence));
}

}  // namespace
}  // namespace esdp::provider
