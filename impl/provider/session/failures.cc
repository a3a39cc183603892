#include "impl/provider/session/failures.h"

#include "impl/base/status.h"

namespace esdp::provider {
namespace {

using fabric::Cause;
using fabric::WorkStatus;
using sdp::Outcome;

// "; the system says: ..." when there is more to say than the cause.
std::string Details(const FailureDetails& evidence) {
  if (!evidence.detail.empty()) return " (" + evidence.detail + ")";
  if (!evidence.refused_call.ok()) {
    return " (" + std::string(FromAbsl(evidence.refused_call.message())) + ")";
  }
  return "";
}

// What the peer says is its own word: whether it is right nobody here knows.
Failure Terminated(const FailureDetails& evidence, const std::string& begin) {
  const std::string how = evidence.detail.empty()
                              ? "the peer's device ended the connection over work of this side"
                              : "the peer ended the connection with Terminate: " + evidence.detail;
  return {EndReason::kPeerReset, begin + how};
}

// Of a connection that the peer has asked for.
Failure SetUpFailure(const FailureDetails& evidence, const std::string& begin) {
  const std::string end = Details(evidence);
  switch (evidence.cause) {
    case Cause::kTimedOut:
    case Cause::kPeerSilent:
      return {EndReason::kConnectTimedOut, begin + "it was not complete in time" + end};
    case Cause::kPeerReset:
    case Cause::kPeerDisconnect:
      return {EndReason::kPeerReset, begin + "the peer broke off" + end};
    case Cause::kRemoteTerminate:
      return Terminated(evidence, begin);
    case Cause::kProtocol:
      return {EndReason::kPeerProtocol, begin + "the peer broke the fabric's protocol" + end};
    default:
      return {EndReason::kFabricFailed, begin + "the fabric failed" + end};
  }
}

std::string ReasonOf(Rejection rejection) {
  return rejection == Rejection::kNone ? "" : std::string(": ") + ToText(rejection);
}

Failure ConnectFailure(const FailureDetails& evidence, const Address& peer) {
  const std::string begin = "connect to " + fabric::ToString(peer) + ": ";
  const std::string end = Details(evidence);
  switch (evidence.cause) {
    case Cause::kRefused:
      return {EndReason::kRefused, begin + "nobody listens there" + end};
    case Cause::kRejected:
      return {EndReason::kRejected, begin + "the program there rejected the connection" +
                                        ReasonOf(evidence.rejection) + end};
    case Cause::kUnreachable:
      return {EndReason::kUnreachable, begin + "no route leads there" + end};
    case Cause::kTimedOut:
      return {EndReason::kConnectTimedOut, begin + "no answer before the deadline" + end};
    case Cause::kPeerSilent:
      return {EndReason::kConnectTimedOut, begin + "the peer fell silent while connecting" + end};
    case Cause::kPeerReset:
    case Cause::kPeerDisconnect:
      return {EndReason::kPeerReset, begin + "the peer broke off while connecting" + end};
    case Cause::kRemoteTerminate:
      return Terminated(evidence, begin);
    case Cause::kProtocol:
      return {EndReason::kPeerProtocol,
              begin + "what answered does not speak the fabric's protocol" + end};
    case Cause::kNone:
    case Cause::kLocalDisconnect:
    case Cause::kLocalAccess:
    case Cause::kDevice:
      break;
  }
  return {EndReason::kFabricFailed, begin + "the fabric failed" + end};
}

// A connection that was there and is gone, by what the fabric says of it.
Failure LossByCause(const FailureDetails& evidence, const std::string& begin) {
  const std::string end = Details(evidence);
  switch (evidence.cause) {
    case Cause::kPeerSilent:
    case Cause::kTimedOut:
      return {EndReason::kPeerSilent, begin + "the peer no longer answers keep-alive probes" + end};
    case Cause::kProtocol:
      return {EndReason::kPeerProtocol, begin + "the peer broke the fabric's protocol" + end};
    case Cause::kLocalAccess:
      return {EndReason::kRemoteAccess,
              begin + "the peer asked for memory that it was not shown" + end};
    case Cause::kRemoteTerminate:
      return Terminated(evidence, begin);
    case Cause::kDevice:
      return {EndReason::kFabricFailed, begin + "the fabric failed" + end};
    case Cause::kPeerDisconnect:
      return {EndReason::kPeerReset,
              begin + "the peer ended the connection without saying good-bye" + end};
    case Cause::kNone:
    case Cause::kLocalDisconnect:
      // The end that follows a refusal says only that this side has made it.
      if (!evidence.refused_call.ok()) {
        return {EndReason::kFabricFailed,
                begin + "the fabric refused a call (" +
                    std::string(FromAbsl(evidence.refused_call.message())) + ")"};
      }
      break;
    case Cause::kPeerReset:
    case Cause::kRejected:
    case Cause::kRefused:
    case Cause::kUnreachable:
      break;
  }
  return {EndReason::kPeerReset, begin + "the peer or the network broke the connection off" + end};
}

Failure Loss(const FailureDetails& evidence, const std::string& begin) {
  switch (evidence.work) {
    case WorkStatus::kRemoteAccess:
      return {EndReason::kRemoteAccess,
              begin + "the peer refused access to memory it had shown" + Details(evidence)};
    case WorkStatus::kLocalProtection:
      return {EndReason::kFabricFailed,
              begin + "the fabric refused access to our own memory" + Details(evidence)};
    case WorkStatus::kRemoteOperation:
      if (evidence.cause == Cause::kRemoteTerminate && !evidence.detail.empty()) break;
      return {EndReason::kFabricFailed,
              begin + "the peer's fabric could not carry out an operation" + Details(evidence)};
    case WorkStatus::kReceiverNotReady:
      return {EndReason::kPeerProtocol,
              begin + "the peer had promised a receive buffer and had none" + Details(evidence)};
    case WorkStatus::kSuccess:
    case WorkStatus::kFlushed:
    case WorkStatus::kTransport:
      break;
  }
  return LossByCause(evidence, begin);
}

Failure ResumeFailure(const FailureDetails& evidence, const std::string& begin) {
  // Time ran out: that this side then ended the queue pair explains nothing.
  if (evidence.cause == Cause::kNone || evidence.cause == Cause::kLocalDisconnect) {
    return {EndReason::kPeerSilent, begin};
  }
  const bool silent = evidence.cause == Cause::kTimedOut || evidence.cause == Cause::kPeerSilent;
  return {silent ? EndReason::kPeerSilent : EndReason::kPeerReset,
          begin + ": " + fabric::ToString(evidence.cause) + Details(evidence)};
}

}  // namespace

Failure Explain(Outcome outcome, const char* reason, const FailureDetails& evidence,
                const Address& peer, SetUp set_up) {
  const bool incoming = set_up == SetUp::kIncoming;
  const std::string begin = incoming ? "set-up with " + fabric::ToString(peer) + " failed: "
                                     : "connection with " + fabric::ToString(peer) + ": ";
  const std::string rule = *reason == '\0' ? "no reason given" : reason;
  const std::string field =
      *evidence.message_field == '\0' ? "" : std::string(evidence.message_field) + ": ";
  switch (outcome) {
    case Outcome::kDone:
    case Outcome::kCancelled:
    case Outcome::kDeadlineExceeded:
      return {};
    case Outcome::kShutDown:
      return {EndReason::kShutDown, begin + "closed by this side"};
    case Outcome::kLocalAbort:
      return {EndReason::kLocalAbort,
              begin + "aborted by this side" + (*reason == '\0' ? "" : ": " + rule)};
    case Outcome::kConnectFailed:
      return incoming ? SetUpFailure(evidence, begin) : ConnectFailure(evidence, peer);
    case Outcome::kHandshakeRefused:
      return {EndReason::kHandshakeRefused,
              begin + "its Hello or HelloAck is refused: " + field + rule};
    case Outcome::kPeerReset:
      if (evidence.cause == Cause::kNone && *reason != '\0')
        return {EndReason::kPeerReset, begin + rule};
      return Loss(evidence, begin);
    case Outcome::kFabricError:
      return Loss(evidence, begin);
    case Outcome::kPeerProtocol:
      return {EndReason::kPeerProtocol, begin + "the peer broke SDP: " + field + rule};
    case Outcome::kResumeFailed:
      return ResumeFailure(evidence, begin + "suspended and not resumed: " + rule);
    case Outcome::kUnsupported:
    case Outcome::kInternal:
      break;
  }
  return {EndReason::kInternal, begin + "a fault of this library: " + rule};
}

Failure ExplainSuspend(Outcome outcome, const Address& peer) {
  const std::string begin = "moving the connection with " + fabric::ToString(peer) + ": ";
  const EndReason ending = EndingOfOperation(outcome);
  switch (outcome) {
    case Outcome::kUnsupported:
      return {ending,
              begin +
                  "the peer does not let itself be moved (its peer_moves), holds one advert "
                  "at a time (MaxAdverts 1), as peers do that ignore SuspComm, or this side "
                  "behaves like one"};
    case Outcome::kDeadlineExceeded:
      return {ending, begin +
                          "it could not begin in time: transfers in process have not ended, or the "
                          "peer gives no buffer for a message"};
    case Outcome::kShutDown:
      return {ending, begin + "the connection is being closed"};
    case Outcome::kCancelled:
      return {ending, begin + "Cancel was called"};
    default:
      return {ending, ""};
  }
}

EndReason EndingOfOperation(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCancelled:
      return EndReason::kCancelled;
    case Outcome::kDeadlineExceeded:
      return EndReason::kDeadlineExceeded;
    case Outcome::kShutDown:
      return EndReason::kShutDown;
    case Outcome::kUnsupported:
      return EndReason::kUnsupported;
    default:
      return EndReason::kOk;
  }
}

bool IsOfConnection(Outcome outcome) {
  return outcome != Outcome::kDone && EndingOfOperation(outcome) == EndReason::kOk;
}

}  // namespace esdp::provider
