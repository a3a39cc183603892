#include "impl/sdp/connection.h"

#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/common/limits.h"

// Set-up, what the application asks, what the clock says, moves, and the end: what happens between
// the steps of the streams.

namespace esdp::sdp {

bool Connection::Move(PhaseCue cue) {
  const std::optional<Phase> next = Next(phase_, cue);
  if (!next) return false;
  phase_ = *next;
  if (phase_ != Phase::kEstablished) owed_.Set(Duty::kPhase, true);
  return true;
}

// --- set-up ---

void Connection::On(const AskConnect&, Actions& actions) {
  if (!Move(PhaseCue::kAskConnect)) return;
  // Before the Hello announces them [R2.7.1, R2.7.2].
  const uint16_t posted = halves_.PostAllReceives(actions);
  actions.emplace_back(StartConnect{handshake_.Hello(posted)});
}

void Connection::On(const HelloArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kResuming) return OnHelloOfReturn(arrived.hello, actions);
  if (phase_ != Phase::kIdle) return;
  if (const char* refusal = handshake_.OnHello(arrived.hello); refusal != nullptr) {
    On(HelloRefused{refusal}, actions);
    return;
  }
  Move(PhaseCue::kHelloAccepted);
  const uint16_t posted = halves_.PostAllReceives(actions);
  actions.emplace_back(AcceptConnection{handshake_.HelloAck(posted)});
}

// [R2.8.7]
void Connection::On(const HelloRefused& refused, Actions& actions) {
  if (phase_ != Phase::kIdle) {
    Fail(Outcome::kHandshakeRefused, refused.reason, actions);
    return;
  }
  Move(PhaseCue::kHelloRejected);
  actions.emplace_back(RejectConnection{refused.reason});
  teardown_.SetCause(Outcome::kHandshakeRefused, refused.reason);
  End(actions);
}

// A queue pair, the first or a later one [12], is ready.
void Connection::On(const Established& established, Actions& actions) {
  const bool resumes = phase_ == Phase::kResuming;
  if (!resumes && !Next(phase_, PhaseCue::kEstablished)) return;
  if (phase_ == Phase::kHelloSent || (resumes && handshake_.config().connecting)) {
    const char* refusal =
        handshake_.OnHelloAck(established.hello_ack, halves_.outbound().message_bytes());
    if (refusal != nullptr) return Fail(Outcome::kHandshakeRefused, refusal, actions);
  }
  Move(!resumes                   ? PhaseCue::kEstablished
       : teardown_.disconn_sent() ? PhaseCue::kResumedShut
       : teardown_.peer_shut()    ? PhaseCue::kResumedPeerShut
                                  : PhaseCue::kResumed);
  if (!resumes) handshake_.OnPath(established.addresses);
  halves_.Start(handshake_.config(), handshake_.peer(), established);
  if (resumes) {
    suspend_.OnResumed(actions);
    halves_.PostFreeReceives(actions);
    ++halves_.counters().resumptions;
  } else {
    actions.emplace_back(ReportConnected{});
  }
  while (handshake_.has_early()) On(handshake_.TakeEarly(), actions);
}

void Connection::On(const ConnectFailed& failed, Actions& actions) {
  const bool resuming = phase_ == Phase::kResuming;
  if (resuming && failed.another_way) return LeaveQueuePair(actions);
  if (!Move(PhaseCue::kConnectFailed)) return;
  teardown_.SetCause(resuming ? Outcome::kResumeFailed : Outcome::kConnectFailed,
                     resuming ? "no new connection was made" : "no connection was made");
  End(actions);
}

// --- what the application asks ---

void Connection::On(const AskCancel& ask, Actions& actions) {
  if (ask.mode == CancelMode::kAbortConnection) must_end_ = ask;
  if (!suspend_.Cancel(ask.operation, ask.outcome, actions)) halves_.Cancel(ask, actions);
}

void Connection::On(const AskUrgent& ask, Actions& actions) {
  if (phase_ == Phase::kClosed && !teardown_.in_order()) {
    FinishNow(ask.operation, teardown_.cause(), actions);
  } else if (teardown_.closing()) {
    FinishNow(ask.operation, Outcome::kShutDown, actions);
  } else {
    halves_.Ask(ask, actions);
  }
}

void Connection::On(const AskShutdown& ask, Actions& actions) {
  if (phase_ == Phase::kClosed) {
    FinishNow(ask.operation, teardown_.cause(), actions);
  } else {
    teardown_.OnAskShutdown(ask);
  }
}

void Connection::On(const AskClose& ask, Actions& actions) {
  if (teardown_.reported()) {
    FinishNow(ask.operation, ask.abort ? Outcome::kDone : teardown_.cause(), actions);
    return;
  }
  const bool escalates = ask.abort && teardown_.close_pending();
  teardown_.OnAskClose(ask, AddSaturating(halves_.now(), handshake_.config().linger));
  if (phase_ == Phase::kClosed) {
    MaybeReportClosed(actions);
  } else if (escalates) {
    Fail(Outcome::kLocalAbort,
         WaitsForPeerAlone() ? "everything had been sent, and the peer had not closed its side"
                             : "closed before everything had been sent",
         actions);
  } else if (ask.abort) {
    Fail(Outcome::kLocalAbort, "the application aborted the connection", actions);
  } else if (phase_ < Phase::kEstablished) {
    Fail(Outcome::kLocalAbort, "closed before it was connected", actions);
  } else if (phase_ != Phase::kAborting) {
    halves_.CancelReceives(actions);
  }
}

// --- timers ---

void Connection::On(const TimerFired& fired, Actions& actions) {
  switch (fired.timer) {
    case Timer::kAcknowledge:
      return halves_.outgoing().OnAcknowledgeTimer();
    case Timer::kWindow:
      return halves_.OnWindowTimer(IsOpen(phase_), actions);
    case Timer::kCancel:
      if (!halves_.OnCancelTimer()) return;
      return Fail(Outcome::kLocalAbort,
                  "the peer did not give back within cancel_grace what was cancelled", actions);
    case Timer::kSuspend:
      return FailIf(Outcome::kResumeFailed, suspend_.OnTimer(phase_, halves_.now(), actions),
                    actions);
    case Timer::kClose:
      break;
  }
  teardown_.OnTimer();
  if (teardown_.LingerEnded(halves_.now())) {  // [R13.2.10]
    Fail(Outcome::kLocalAbort,
         WaitsForPeerAlone()
             ? "the linger time ran out: everything had been sent, and the peer had not closed its "
               "side"
             : "the linger time ran out before everything had been sent",
         actions);
    teardown_.StopWaiting();
  } else if (phase_ == Phase::kLastAck && teardown_.WaitEnded(halves_.now())) {
    Move(PhaseCue::kWaitEnded);
    teardown_.WaitForPeer(kTimeInfinite);
  }
}

// --- to a new queue pair [12]: finish what is in process, say so, and leave the old one ---

void Connection::On(const AskSuspend& ask, Actions& actions) {
  Outcome refusal = Outcome::kDone;
  if (phase_ == Phase::kClosed) {
    refusal = teardown_.outcome();
  } else if (phase_ == Phase::kAborting || phase_ == Phase::kTimeWait ||
             phase_ == Phase::kLastAck || teardown_.closing()) {
    refusal = Outcome::kShutDown;
  } else if (phase_ < Phase::kEstablished || !handshake_.MayMovePeer() || suspend_.pending()) {
    refusal = Outcome::kUnsupported;
  }
  if (refusal != Outcome::kDone) return FinishNow(ask.operation, refusal, actions);
  suspend_.OnAsk(ask);
}

const char* Connection::OnSuspComm(const wire::SuspComm& message) {
  // Both DisConns have crossed it: the peer ends the connection.
  if (phase_ == Phase::kLastAck) return nullptr;
  const Config& config = handshake_.config();
  if (const char* refusal = handshake_.RefusalOfMove()) return refusal;
  if (!suspend_.TakeMove(halves_.now(), config.moves_max)) return "SuspComm: too many moves";
  const Time until = AddSaturating(halves_.now(), config.suspend_wait);
  const Suspend::Answer answer = suspend_.OnSuspComm(message, config.connecting, until);
  if (answer.violation == nullptr && answer.responds) Move(PhaseCue::kSuspCommArrived);
  return answer.violation;
}

// What leaves, and nothing else may.
void Connection::SuspendOut(bool may_advertise, Actions& actions) {
  if (suspend_.initiator()) return halves_.StayAtRest(actions);
  Outgoing& outgoing = halves_.outgoing();
  const bool ready = halves_.ComeToRest(may_advertise, actions);
  if (suspend_.owes_susp_comm_ack() && ready && halves_.inbound().FreeReceives() >= kBuffersMin) {
    suspend_.TakeSuspCommAck();
    outgoing.Post(wire::SuspCommAck{}, Outgoing::Kind::kControl, actions, halves_.counters());
    Move(PhaseCue::kSuspCommAckSent);
  } else if (suspend_.owes_susp_comm() && ready && Move(PhaseCue::kSuspCommSent)) {
    const wire::SuspComm message = suspend_.TakeSuspComm();
    NoteDuties();
    outgoing.Post(message, Outgoing::Kind::kControl, actions, halves_.counters());
  } else {
    outgoing.SendCredits(actions, halves_.counters());
  }
}

// [R12.4], [R12.6], [R12.7]
void Connection::LeaveQueuePair(Actions& actions) {
  if (halves_.outgoing().DisConnPosted()) teardown_.OnDisConnLeft();
  halves_.OnQueuePairLeft(actions);
  handshake_.OnQueuePairLeft(halves_.inbound().buffers().bytes());
  teardown_.OnQueuePairLeft();
  if (phase_ != Phase::kResuming) return;
  handshake_.OnConnectingAnew(suspend_.responder());
  if (suspend_.initiator()) {
    actions.emplace_back(AwaitHello{});
    return;
  }
  actions.emplace_back(ReplaceQueuePair{});
  const uint16_t posted = halves_.PostFreeReceives(actions);
  actions.emplace_back(StartConnect{handshake_.HelloOfReturn(posted), suspend_.peer_port()});
}

const char* Connection::CheckResumption(const wire::Message& hello) const {
  return suspend_.initiator() ? handshake_.CheckReturn(hello) : "Hello: none is expected";
}

void Connection::OnHelloOfReturn(const wire::Message& hello, Actions& actions) {
  const char* refusal = CheckResumption(hello);
  if (refusal == nullptr) {
    refusal = Handshake::CheckHelloOfReturn(hello, halves_.outbound().message_bytes());
  }
  if (refusal == nullptr && halves_.inbound().FreeReceives() < kBuffersMin) {
    refusal = "Bufs: the peer has overdrawn its credits";
  }
  // Once answered, another request is none of this connection's.
  const bool answered = halves_.outgoing().credits().posted() > 0;
  if (refusal == nullptr && answered) refusal = "Hello: a second one";
  if (refusal != nullptr) {
    actions.emplace_back(RejectConnection{refusal});
    return;
  }
  (void)handshake_.OnHello(hello);
  actions.emplace_back(ReplaceQueuePair{});
  const uint16_t posted = halves_.PostFreeReceives(actions);
  actions.emplace_back(AcceptConnection{handshake_.HelloAck(posted)});
}

// --- the end ---

// The end of the peer's stream.
const char* Connection::OnDisConn(Actions& actions) {
  // [R17.8] An advert, or a remainder that it still owes.
  if (halves_.inbound().reads()) return "DisConn: an advert is not processed";
  const bool suspending = phase_ == Phase::kSuspending && !teardown_.peer_shut();
  if (suspending && teardown_.disconn_sent()) {
    Move(PhaseCue::kBothShut);  // there is nothing left to move
  } else if (!suspending && !Move(PhaseCue::kDisConnArrived)) {
    return "DisConn: a second one";
  }
  teardown_.OnPeerDisConn();  // [R13.2.2]
  halves_.OnDisConn(actions);
  return nullptr;
}

void Connection::Fail(Outcome cause, const char* reason, Actions& actions) {
  if (!Next(phase_, PhaseCue::kFailed)) return;
  teardown_.SetCause(cause, reason);
  // [R13.1.3] AbortConn is legal only behind a DisConn of ours. It may be lost with the queue pair.
  if (IsOpen(phase_) && teardown_.disconn_sent() && !halves_.offering() &&
      halves_.outgoing().MaySendControl()) {
    halves_.outgoing().Post(wire::AbortConn{}, Outgoing::Kind::kControl, actions,
                            halves_.counters());
  }
  Move(PhaseCue::kFailed);
  if (phase_ == Phase::kClosed) {
    End(actions);
  } else {
    teardown_.Abort(actions);
  }
}

// [R13.1.4, R14.2]
void Connection::On(const ConnectionLost& lost, Actions& actions) {
  const Phase before = phase_;
  if (!Move(PhaseCue::kLost)) return;
  if (before == Phase::kSuspended && !lost.reset) return LeaveQueuePair(actions);
  if (before == Phase::kSuspended) Move(PhaseCue::kLost);  // nobody will come back
  const bool in_order =
      before == Phase::kTimeWait || (before == Phase::kLastAck && lost.clean && !lost.fabric_error);
  if (!in_order) {
    const bool set_up = before != Phase::kHelloSent && before != Phase::kHelloAckSent;
    const Outcome cause = lost.fabric_error            ? Outcome::kFabricError
                          : before == Phase::kResuming ? Outcome::kResumeFailed
                          : set_up                     ? Outcome::kPeerReset
                                                       : Outcome::kConnectFailed;
    if (teardown_.in_order() && teardown_.peer_shut()) teardown_.KeepInput();
    teardown_.SetCause(cause, lost.fabric_error ? "the queue pair failed"
                                                : "the connection ended without DisConn");
  }
  End(actions);
}

// Nothing moves any more: operations end, in posting order.
void Connection::End(Actions& actions) {
  teardown_.StopWaiting();
  // What has ended without a queue pair the peer would learn at its deadline only.
  if (suspend_.awaited() && teardown_.cause() == Outcome::kLocalAbort) {
    handshake_.OnQueuePairLeft(halves_.inbound().buffers().bytes());
    const uint16_t posted = handshake_.config().receive_buffers;
    actions.emplace_back(Farewell{handshake_.HelloOfReturn(posted), suspend_.peer_port()});
  }
  handshake_.DropEarly();
  halves_.End(teardown_.cause(), teardown_.input_kept(), TermsNow(), owed_, actions);
  teardown_.FinishShutdowns(teardown_.cause(), actions);
  suspend_.Finish(teardown_.outcome(), actions);
  MaybeReportClosed(actions);
}

// [R13.2.6] What the peer sent before its DisConn stays readable, so nothing is reported while it
// lasts.
void Connection::MaybeReportClosed(Actions& actions) {
  if (phase_ != Phase::kClosed || teardown_.reported()) return;
  if (teardown_.input_kept() && halves_.inbound().in_use() && !teardown_.closing()) return;
  halves_.FinishReceives(teardown_.outcome(), actions);
  teardown_.Report(actions);
}

// --- the connection as a value ---

Readiness Connection::readiness() const {
  const OutboundHalf& out = halves_.outbound();
  const InboundHalf& in = halves_.inbound();
  Readiness now;
  now.readable = in.readable() && !teardown_.closing();
  now.writable = IsOpen(phase_) && !teardown_.shut() && out.writable();
  now.urgent = in.urgent().unheard() && !IsOver(phase_);
  now.ended = teardown_.peer_shut() || IsOver(phase_);
  return now;
}

uint64_t Connection::digest() const {
  Digest digest;
  digest.Add(static_cast<uint8_t>(phase_));
  handshake_.AddTo(digest);
  halves_.AddTo(digest);
  teardown_.AddTo(digest);
  suspend_.AddTo(digest);
  readiness_watch_.AddTo(digest);
  return digest.value();
}

}  // namespace esdp::sdp
