#include "impl/sdp/connection.h"

#include <algorithm>
#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"

// Set-up, what the application asks, what the clock says, and the end.

namespace esdp::sdp {

bool Connection::Move(PhaseCue cue) {
  const std::optional<Phase> next = Next(phase_, cue);
  if (!next) return false;
  phase_ = *next;
  owed_.Add(Duty::kPhase, phase_ != Phase::kEstablished);
  return true;
}

// --- set-up ---

void Connection::On(const AskConnect&, Actions& actions) {
  if (!Move(PhaseCue::kAskConnect)) return;
  inbound_.buffers().PostAll(outgoing_.credits(),
                             actions);  // before the Hello announces them [R2.7.1, R2.7.2]
  actions.emplace_back(StartConnect{handshake_.Hello(outgoing_.credits().posted())});
}

void Connection::On(const HelloArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kResuming) return OnResumptionHello(arrived.hello, actions);
  if (phase_ != Phase::kIdle) return;
  if (const char* refusal = handshake_.OnHello(arrived.hello); refusal != nullptr) {
    On(HelloRefused{refusal}, actions);
    return;
  }
  Move(PhaseCue::kHelloAccepted);
  inbound_.buffers().PostAll(outgoing_.credits(), actions);
  actions.emplace_back(AcceptConnection{handshake_.HelloAck(outgoing_.credits().posted())});
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

void Connection::On(const Established& established, Actions& actions) {
  if (phase_ == Phase::kResuming) return Resume(established, actions);
  if (!Next(phase_, PhaseCue::kEstablished)) return;
  if (phase_ == Phase::kHelloSent) {
    const char* refusal = handshake_.OnHelloAck(established.hello_ack, 0);
    if (refusal != nullptr) return Fail(Outcome::kHandshakeRefused, refusal, actions);
  }
  Move(PhaseCue::kEstablished);
  handshake_.OnPath(established.addresses);
  StartCarrying(established);
  actions.emplace_back(ReportConnected{});
  ReceiveEarly(actions);
}

void Connection::ReceiveEarly(Actions& actions) {
  while (handshake_.has_early()) {
    const MessageArrived arrived = handshake_.TakeEarly();
    On(arrived, actions);
  }
}

// A queue pair, the first or a later one, is ready.
void Connection::StartCarrying(const Established& established) {
  const Config& config = handshake_.config();
  const PeerParameters& peer = handshake_.peer();
  const bool deployed = handshake_.either_deployed();
  // [R19.1] No key of a peer's is invalidated towards a deployed one, nor as one.
  const bool invalidates = peer.accepts_invalidate && !deployed;
  outgoing_.Start(config, peer.buffers);
  inbound_.Start(established.reads_out_max, invalidates);
  OutboundHalf::Limits limits;
  limits.queue.gather_max = std::min(config.gather_max, uint32_t{kGatherMax});
  limits.queue.send_buffers = config.send_buffers;
  limits.queue.immediate_max = config.immediate_max;
  limits.queue.policy.coalesce_max = config.coalesce_max;
  limits.peer_may_read = config.can_expose && established.reads_in_max > 0;
  limits.invalidates = invalidates;
  limits.write_bytes_max = config.read_bytes_max;
  limits.peer_buffer_bytes = peer.receive_buffer_bytes;
  limits.peer_buffer_wish = deployed ? 0 : config.peer_receive_buffer_bytes;
  outbound_.Start(limits);
  modes_.Start(!deployed && config.max_adverts > 1, config.mode_send, config.mode_receive);
}

void Connection::On(const ConnectFailed&, Actions& actions) {
  const bool resuming = phase_ == Phase::kResuming;
  if (!Move(PhaseCue::kConnectFailed)) return;
  teardown_.SetCause(resuming ? Outcome::kResumeFailed : Outcome::kConnectFailed,
                     resuming ? "no new connection was made" : "no connection was made");
  End(actions);
}

// --- what the fabric says ---

// [R3.10.4]
void Connection::On(const MessageRefused& refused, Actions& actions) {
  Fail(Outcome::kPeerProtocol, refused.reason, actions);
}

void Connection::On(const WriteFinished&, Actions& actions) {
  if (is_over()) return;
  if (!ESDP_CHECK(outbound_.write_in_flight())) {
    return Fail(Outcome::kInternal, "WriteFinished: no Write is posted", actions);
  }
  outbound_.OnWriteFinished(outgoing_);
}

void Connection::On(const ExposeFailed& failed, Actions& actions) {
  const bool of_sink = SinkAdverts::Owns(failed.advert);
  const bool asked =
      of_sink ? inbound_.OnExposeFailed(failed.advert) : outbound_.OnExposeFailed(failed.advert);
  if (is_over()) return;
  if (!ESDP_CHECK(asked)) return Fail(Outcome::kInternal, "ExposeFailed: not asked", actions);
  of_sink ? inbound_.GoWithoutExposure() : outbound_.GoWithoutExposure();
  ++counters_.expose_failures;
}

// --- the number of receive buffers ---

void Connection::On(const ReceivesPrepared& prepared, Actions& actions) {
  inbound_.buffers().OnPrepared(prepared.done, MayPostReceives(), outgoing_.now(),
                                outgoing_.credits(), actions);
}

// --- what the application asks ---

void Connection::On(const AskCancel& ask, Actions& actions) {
  if (ask.mode == CancelMode::kAbortConnection) must_end_ = ask;
  const Time end_by = AddSaturating(outgoing_.now(), handshake_.config().cancel_grace);
  if (inbound_.urgent().Cancel(ask.operation, ask.outcome, actions)) return;
  if (outbound_.Cancel(ask, end_by, outgoing_, actions)) {
    cancel_due_ = std::min(cancel_due_, outbound_.NextEndBy());
  } else if (!suspend_.Cancel(ask.operation, ask.outcome, actions)) {
    inbound_.Cancel(ask, end_by, actions);
    cancel_due_ = std::min(cancel_due_, inbound_.NextEndBy());
  }
}

// What was cancelled to end with this step, and has not, takes the connection with it.
void Connection::EndOrAbort(Actions& actions) {
  const AskCancel ask = *must_end_;
  must_end_.reset();
  const bool late = ask.outcome == Outcome::kDeadlineExceeded;
  if (outbound_.Has(ask.operation)) {
    Fail(Outcome::kLocalAbort,
         late ? "a send had begun when its deadline passed" : "a send that had begun was cancelled",
         actions);
  } else if (inbound_.Has(ask.operation)) {
    Fail(Outcome::kLocalAbort,
         late ? "a receive had begun when its deadline passed"
              : "a receive that had begun was cancelled",
         actions);
  } else if (suspend_.Has(ask.operation)) {
    Fail(Outcome::kLocalAbort, "a move that had begun was cancelled", actions);
  }
}

void Connection::On(const AskUrgent& ask, Actions& actions) {
  if (phase_ == Phase::kClosed && !teardown_.in_order()) {
    UrgentIn::Refuse(ask.operation, teardown_.cause(), actions);
  } else if (teardown_.closing()) {
    UrgentIn::Refuse(ask.operation, Outcome::kShutDown, actions);
  } else {
    inbound_.urgent().Await(ask.operation, actions);
  }
}

void Connection::On(const AskMode& ask, Actions&) {
  handshake_.Want(ask);
  modes_.Want(ask.send, ask.receive);
}

void Connection::On(const WatchReadiness&, Actions&) { readiness_watch_.Start(); }

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
  teardown_.OnAskClose(ask, AddSaturating(outgoing_.now(), handshake_.config().linger));
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
    inbound_.CancelAll(Outcome::kShutDown, actions);
  }
}

// --- timers ---

void Connection::On(const TimerFired& fired, Actions& actions) {
  if (fired.timer == Timer::kAcknowledge) return outgoing_.OnAcknowledgeTimer();
  if (fired.timer == Timer::kCancel) return OnCancelTimer(actions);
  if (fired.timer == Timer::kWindow) {
    return inbound_.buffers().OnWindowTimer(IsOpen(phase_) && inbound_.idle(), outgoing_.now(),
                                            outgoing_.credits(), actions);
  }
  if (fired.timer == Timer::kSuspend) {
    const char* reason = suspend_.OnTimer(phase_, outgoing_.now(), actions);
    if (reason != nullptr) Fail(Outcome::kResumeFailed, reason, actions);
    return;
  }
  teardown_.OnTimer();
  if (teardown_.LingerEnded(outgoing_.now())) {  // [R13.2.10]
    Fail(Outcome::kLocalAbort,
         WaitsForPeerAlone()
             ? "the linger time ran out: everything had been sent, and the peer had not closed its "
               "side"
             : "the linger time ran out before everything had been sent",
         actions);
    teardown_.StopWaiting();
  } else if (phase_ == Phase::kLastAck && teardown_.WaitEnded(outgoing_.now())) {
    Move(PhaseCue::kWaitEnded);
    teardown_.WaitForPeer(kTimeInfinite);
  }
}

// Set lazily: most of what is cancelled has ended long since.
void Connection::OnCancelTimer(Actions& actions) {
  cancel_armed_ = kTimeInfinite;
  cancel_due_ = std::min(outbound_.NextEndBy(), inbound_.NextEndBy());
  if (cancel_due_ > outgoing_.now()) return;
  cancel_due_ = kTimeInfinite;
  Fail(Outcome::kLocalAbort, "the peer did not give back within cancel_grace what was cancelled",
       actions);
}

// --- the end ---

void Connection::Fail(Outcome cause, const char* reason, Actions& actions) {
  if (!Next(phase_, PhaseCue::kFailed)) return;
  teardown_.SetCause(cause, reason);
  // [R13.1.3] AbortConn is legal only behind a DisConn of ours. It may be lost with the queue pair.
  if (IsOpen(phase_) && teardown_.disconn_sent() && !outbound_.offering() && !inbound_.offering() &&
      outgoing_.MaySendControl()) {
    outgoing_.Post(wire::AbortConn{}, Outgoing::Kind::kControl, actions, counters_);
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
    teardown_.SetCause(cause, lost.fabric_error ? "the queue pair failed"
                                                : "the connection ended without DisConn");
  }
  End(actions);
}

// Nothing moves any more: operations end, in posting order.
void Connection::End(Actions& actions) {
  teardown_.StopWaiting();
  if (suspend_.awaited() && teardown_.cause() == Outcome::kLocalAbort) SendFarewell(actions);
  handshake_.DropEarly();
  outgoing_.OnEnd();
  outbound_.DropSinkAdverts();
  inbound_.OnLost();
  if (teardown_.in_order()) {
    outbound_.OnAllDelivered(counters_, actions);
  } else {
    inbound_.DropUnread();
  }
  outbound_.FinishAll(teardown_.outcome(), actions);
  if (teardown_.in_order()) {
    Deliver(actions);
  } else {
    inbound_.FinishAll(teardown_.cause(), actions);
  }
  inbound_.urgent().FinishAll(teardown_.outcome(), actions);
  teardown_.FinishShutdowns(teardown_.cause(), actions);
  suspend_.Finish(teardown_.outcome(), actions);
  MaybeReportClosed(actions);
}

// [R13.2.6] What the peer sent before it ended in order stays readable, so nothing is reported
// while it lasts.
void Connection::MaybeReportClosed(Actions& actions) {
  if (phase_ != Phase::kClosed || teardown_.reported()) return;
  if (teardown_.in_order() && inbound_.in_use() && !teardown_.closing()) return;
  inbound_.DropUnread();
  inbound_.FinishAll(teardown_.outcome(), actions);
  teardown_.Report(actions);
}

// --- the connection as a value ---

uint64_t Connection::digest() const {
  Digest digest;
  digest.Add(static_cast<uint8_t>(phase_));
  handshake_.AddTo(digest);
  outgoing_.AddTo(digest);
  outbound_.AddTo(digest);
  inbound_.AddTo(digest);
  modes_.AddTo(digest);
  teardown_.AddTo(digest);
  suspend_.AddTo(digest);
  readiness_watch_.AddTo(digest);
  return digest.value();
}

}  // namespace esdp::sdp
