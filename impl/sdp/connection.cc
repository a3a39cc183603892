#include "impl/sdp/connection.h"

#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

bool Connection::Move(PhaseCue cue) {
  const std::optional<Phase> next = Next(phase_, cue);
  if (next) phase_ = *next;
  calm_ = false;
  return next.has_value();
}

// --- set-up ---

void Connection::On(const AskConnect&, Actions& actions) {
  if (!Move(PhaseCue::kAskConnect)) return;
  buffers_.PostAll(resize_in_.size(), credits_,
                   actions);  // before the Hello announces them [R2.7.1, R2.7.2]
  actions.emplace_back(StartConnect{MakeHello(config_, credits_.posted())});
}

void Connection::On(const HelloArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kResuming) return OnResumptionHello(arrived.hello, actions);
  if (phase_ != Phase::kIdle) return;
  if (const char* refusal = CheckHello(arrived.hello, peer_); refusal != nullptr) {
    On(HelloRefused{refusal}, actions);
    return;
  }
  Move(PhaseCue::kHelloAccepted);
  buffers_.PostAll(resize_in_.size(), credits_, actions);
  actions.emplace_back(AcceptConnection{MakeHelloAck(config_, credits_.posted(), peer_)});
}

// [R2.8.7]
void Connection::On(const HelloRefused& refused, Actions& actions) {
  if (phase_ != Phase::kIdle) {
    Fail(Outcome::kHandshakeRefused, refused.reason, actions);
    return;
  }
  Move(PhaseCue::kHelloRejected);
  actions.emplace_back(RejectConnection{refused.reason});
  cause_ = Outcome::kHandshakeRefused;
  reason_ = refused.reason;
  End(actions);
}

void Connection::On(const Established& established, Actions& actions) {
  if (phase_ == Phase::kResuming) return Resume(established, actions);
  if (!Next(phase_, PhaseCue::kEstablished)) return;
  if (phase_ == Phase::kHelloSent) {
    const char* refusal =
        established.hello_ack ? CheckHelloAck(*established.hello_ack, peer_) : "HelloAck: missing";
    if (refusal != nullptr) {
      Fail(Outcome::kHandshakeRefused, refusal, actions);
      return;
    }
    if (!config_.as_deployed) config_.return_token = peer_.return_token;
  }
  Move(PhaseCue::kEstablished);
  if (established.addresses) NoteAddresses(*established.addresses);
  StartCarrying(established);
  actions.emplace_back(ReportConnected{});
  ReceiveEarly(actions);
}

void Connection::ReceiveEarly(Actions& actions) {
  while (!early_.empty()) {
    const MessageArrived arrived = early_.TakeFront();
    On(arrived, actions);
  }
}

void Connection::StartCarrying(const Established& established) {
  reads_out_max_ = established.reads_out_max;
  credits_.Start(peer_.buffers);
  SendQueue::Limits limits;
  limits.gather_max = config_.gather_max < kGatherMax ? config_.gather_max : uint32_t{kGatherMax};
  limits.send_buffers = config_.send_buffers;
  limits.policy.coalesce_max = config_.coalesce_max;
  peer_may_read_ = config_.can_expose && established.reads_in_max > 0;
  send_.Start(limits);
  resize_out_.Start(peer_.receive_buffer_bytes, peer_.deployed() || config_.as_deployed
                                                    ? 0
                                                    : config_.peer_receive_buffer_bytes);
  ApplySize();
  mode_policy_.Want(config_.mode_send, config_.mode_receive);
  speaks_first_ = config_.initiator_speaks_first && config_.connecting;
  waits_for_first_ = config_.initiator_speaks_first && !config_.connecting;
}

void Connection::On(const ConnectFailed&, Actions& actions) {
  const bool resuming = phase_ == Phase::kResuming;
  if (!Move(PhaseCue::kConnectFailed)) return;
  if (cause_ == Outcome::kDone) {
    cause_ = resuming ? Outcome::kResumeFailed : Outcome::kConnectFailed;
    reason_ = resuming ? "no new connection was made" : "no connection was made";
  }
  End(actions);
}

// --- the wire ---

// [R3.10.4]
void Connection::On(const MessageRefused& refused, Actions& actions) {
  Fail(Outcome::kPeerProtocol, refused.reason, actions);
}

void Connection::On(const ReadFinished&, Actions& actions) {
  if (phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(reader_.reads_in_flight() > 0)) {
    Fail(Outcome::kInternal, "ReadFinished: no Read is posted", actions);
    return;
  }
  const AdvertReader::FinishedRead read = reader_.OnReadFinished();
  receive_.OnReadFinished(read.operation_number, read.length, counters_);
}

void Connection::On(const WriteFinished&, Actions& actions) {
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(writer_.writes_in_flight() > 0)) {
    Fail(Outcome::kInternal, "WriteFinished: no Write is posted", actions);
    return;
  }
  writer_.OnWriteFinished();
  send_.OnWriteFinished();
}

// --- the end ---

void Connection::Fail(Outcome cause, const char* reason, Actions& actions) {
  if (!Next(phase_, PhaseCue::kFailed)) return;
  if (cause_ == Outcome::kDone) {
    cause_ = cause;
    reason_ = reason;
  }
  // [R13.1.3] AbortConn is legal only behind a DisConn of ours. It may be lost with the queue pair.
  if (IsOpen(phase_) && teardown_.disconn_sent() && !source_.offering() && !sink_.offering() &&
      MaySendControl()) {
    Stamp(NewSend(wire::AbortConn{}, actions), SendKind::kControl, false);
  }
  Move(PhaseCue::kFailed);
  if (phase_ == Phase::kClosed) {
    End(actions);
  } else {
    actions.emplace_back(Disconnect{false, cause_, reason_});
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
  if (cause_ == Outcome::kDone && !in_order) {
    const bool set_up = before != Phase::kHelloSent && before != Phase::kHelloAckSent;
    cause_ = lost.fabric_error            ? Outcome::kFabricError
             : before == Phase::kResuming ? Outcome::kResumeFailed
             : set_up                     ? Outcome::kPeerReset
                                          : Outcome::kConnectFailed;
    reason_ = lost.fabric_error ? "the queue pair failed" : "the connection ended without DisConn";
  }
  End(actions);
}

// Nothing moves any more: operations end, in posting order.
void Connection::End(Actions& actions) {
  teardown_.StopWaiting();
  if (suspend_.awaited() && cause_ == Outcome::kLocalAbort) SayFarewell(actions);
  early_.clear();
  posted_sends_.clear();
  sink_.OnLost();
  writer_.DropAll();
  receive_.OnAllWithdrawn();
  if (cause_ == Outcome::kDone) {
    send_.OnAllDelivered();
    send_.FinishReady(counters_, actions);
  } else {
    receive_.DropUnread();
  }
  send_.FinishAll(OutcomeAfterEnd(), actions);
  if (cause_ == Outcome::kDone) {
    Deliver(actions);
  } else {
    receive_.FinishAll(cause_, actions);
  }
  urgent_in_.FinishAll(OutcomeAfterEnd(), actions);
  teardown_.FinishShutdowns(cause_, actions);
  suspend_.Finish(OutcomeAfterEnd(), actions);
  MaybeReportClosed(actions);
}

// [R13.2.6] What the peer sent before it ended in order stays readable, so nothing is reported
// while it lasts.
void Connection::MaybeReportClosed(Actions& actions) {
  if (phase_ != Phase::kClosed || reported_closed_) return;
  const bool readable = receive_.has_unread() || !receive_.empty();
  if (cause_ == Outcome::kDone && readable && !teardown_.closing()) return;
  receive_.DropUnread();
  receive_.FinishAll(OutcomeAfterEnd(), actions);
  teardown_.FinishCloses(cause_, actions);
  actions.emplace_back(ReportClosed{cause_, reason_});
  reported_closed_ = true;
}

Outcome Connection::OutcomeAfterEnd() const {
  return cause_ == Outcome::kDone ? Outcome::kShutDown : cause_;
}

}  // namespace esdp::sdp
