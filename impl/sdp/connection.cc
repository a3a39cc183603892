#include "impl/sdp/connection.h"

#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/limits.h"

namespace esdp::sdp {
namespace {

void FinishNow(OperationId operation, Outcome outcome, Actions& actions) {
  FinishOperation finish;
  finish.operation = operation;
  finish.outcome = outcome;
  actions.emplace_back(finish);
}

}  // namespace

Connection::Connection(const Config& config) : config_(config) {}

void Connection::Step(const Input& input, Time now, Actions& actions) {
  now_ = now;
  const bool answered = !source_.offering() || std::holds_alternative<Exposed>(input) ||
                        std::holds_alternative<ExposeFailed>(input);
  if (!ESDP_CHECK(answered)) Fail(Outcome::kInternal, "Expose: not answered first", actions);
  std::visit([&](const auto& it) { On(it, actions); }, input);
  Advance(actions);
  if (!ESDP_CHECK(Holds())) Fail(Outcome::kInternal, "an invariant does not hold", actions);
  ArmTimers(actions);
}

bool Connection::Move(PhaseCue cue) {
  const std::optional<Phase> next = Next(phase_, cue);
  if (next) phase_ = *next;
  return next.has_value();
}

// --- set-up ---

void Connection::PostAllReceives(Actions& actions) {
  for (uint32_t i = 0; i < config_.receive_buffers; ++i) {
    PostAgain(ReceiveBuffer{static_cast<uint16_t>(i)}, actions);
  }
}

void Connection::PostAgain(ReceiveBuffer buffer, Actions& actions) {
  credits_.OnReceivePosted();
  actions.emplace_back(PostReceive{buffer});
}

void Connection::On(const AskConnect&, Actions& actions) {
  if (!Move(PhaseCue::kAskConnect)) return;
  PostAllReceives(actions);  // before the Hello announces them [2.7]
  actions.emplace_back(StartConnect{MakeHello(config_, credits_.posted())});
}

void Connection::On(const HelloArrived& arrived, Actions& actions) {
  if (phase_ != Phase::kIdle) return;
  if (const char* refusal = CheckHello(arrived.hello, peer_); refusal != nullptr) {
    On(HelloRefused{refusal}, actions);
    return;
  }
  Move(PhaseCue::kHelloAccepted);
  PostAllReceives(actions);
  actions.emplace_back(AcceptConnection{MakeHelloAck(config_, credits_.posted(), peer_)});
}

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
  if (!Next(phase_, PhaseCue::kEstablished)) return;
  if (phase_ == Phase::kHelloSent) {
    const char* refusal =
        established.hello_ack ? CheckHelloAck(*established.hello_ack, peer_) : "HelloAck: missing";
    if (refusal != nullptr) {
      Fail(Outcome::kHandshakeRefused, refusal, actions);
      return;
    }
  }
  Move(PhaseCue::kEstablished);
  StartCarrying(established);
  actions.emplace_back(ReportConnected{});
  while (!early_.empty()) {
    const MessageArrived arrived = early_.TakeFront();
    On(arrived, actions);
  }
}

void Connection::StartCarrying(const Established& established) {
  reads_out_max_ = established.reads_out_max;
  credits_.Start(peer_.buffers);
  SendHalf::Limits limits;
  limits.payload_max = peer_.receive_buffer_bytes - uint32_t{wire::kBaseHeaderBytes};
  if (limits.payload_max > kDataBytesMax) limits.payload_max = kDataBytesMax;
  limits.gather_max = config_.gather_max < kGatherMax ? config_.gather_max : uint32_t{kGatherMax};
  limits.send_buffers = config_.send_buffers;
  limits.policy.coalesce_max = config_.coalesce_max;
  limits.policy.may_advertise = config_.can_expose && established.reads_in_max > 0;
  send_.Start(limits);
  speaks_first_ = config_.initiator_speaks_first && config_.connecting;
  waits_for_first_ = config_.initiator_speaks_first && !config_.connecting;
}

void Connection::On(const ConnectFailed&, Actions& actions) {
  if (!Move(PhaseCue::kConnectFailed)) return;
  if (cause_ == Outcome::kDone) {
    cause_ = Outcome::kConnectFailed;
    reason_ = "no connection was made";
  }
  End(actions);
}

// --- the wire ---

void Connection::On(const MessageArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kHelloSent || phase_ == Phase::kHelloAckSent) {
    early_.PushBack(arrived);
  } else if (IsOpen(phase_)) {
    Receive(arrived, actions);
  }
}

void Connection::On(const MessageRefused& refused, Actions& actions) {
  Fail(Outcome::kPeerProtocol, refused.reason, actions);
}

void Connection::On(const SendFinished&, Actions& actions) {
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(!posted_sends_.empty())) {
    Fail(Outcome::kInternal, "SendFinished: no Send is posted", actions);
    return;
  }
  const SendKind kind = posted_sends_.TakeFront();
  if (kind == SendKind::kPayload) send_.OnPayloadFinished();
  if (kind == SendKind::kDisConn) teardown_.OnDisConnLeft();
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
  if (phase_ != Phase::kAborting && phase_ != Phase::kClosed) {
    Fail(Outcome::kInternal, "WriteFinished: no Write is posted", actions);
  }
}

// --- the end ---

void Connection::Fail(Outcome cause, const char* reason, Actions& actions) {
  if (!Next(phase_, PhaseCue::kFailed)) return;
  if (cause_ == Outcome::kDone) {
    cause_ = cause;
    reason_ = reason;
  }
  // [13.1] AbortConn is legal only behind a DisConn of ours. It may be lost with the queue pair.
  if (IsOpen(phase_) && teardown_.disconn_sent() && !source_.offering() && MaySendControl()) {
    Stamp(NewSend(wire::AbortConn{}, actions), SendKind::kControl, false);
  }
  Move(PhaseCue::kFailed);
  if (phase_ == Phase::kClosed) {
    End(actions);
  } else {
    actions.emplace_back(Disconnect{false, cause_, reason_});
  }
}

void Connection::On(const ConnectionLost& lost, Actions& actions) {
  const Phase before = phase_;
  if (!Move(PhaseCue::kLost)) return;
  const bool in_order =
      before == Phase::kTimeWait || (before == Phase::kLastAck && lost.clean && !lost.fabric_error);
  if (cause_ == Outcome::kDone && !in_order) {
    const bool set_up = before != Phase::kHelloSent && before != Phase::kHelloAckSent;
    cause_ = lost.fabric_error ? Outcome::kFabricError
             : set_up          ? Outcome::kPeerReset
                               : Outcome::kConnectFailed;
    reason_ = lost.fabric_error ? "the queue pair failed" : "the connection ended without DisConn";
  }
  End(actions);
}

// Nothing moves any more: operations end, in posting order.
void Connection::End(Actions& actions) {
  teardown_.StopWaiting();
  early_.clear();
  posted_sends_.clear();
  if (cause_ == Outcome::kDone) {
    send_.OnAllDelivered();
    send_.FinishReady(SourceAdvert::kNowhere, counters_, actions);
  } else {
    receive_.DropUnread();
  }
  send_.FinishAll(OutcomeAfterEnd(), actions);
  if (cause_ == Outcome::kDone) {
    Deliver(actions);
  } else {
    receive_.FinishAll(cause_, actions);
  }
  teardown_.FinishShutdowns(cause_, actions);
  MaybeReportClosed(actions);
}

// What the peer sent before it ended in order stays readable, so nothing is reported while it
// lasts.
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

// --- the application ---

void Connection::On(const AskSend& ask, Actions& actions) {
  if (phase_ == Phase::kClosed) {
    if (!ask.more) FinishNow(ask.piece.operation, OutcomeAfterEnd(), actions);
  } else if (teardown_.shut()) {
    send_.AskRefused(ask, Outcome::kShutDown);
  } else {
    send_.Ask(ask);
  }
}

void Connection::On(const AskReceive& ask, Actions& actions) {
  if (phase_ == Phase::kClosed && (cause_ != Outcome::kDone || teardown_.closing())) {
    if (!ask.more) FinishNow(ask.piece.operation, OutcomeAfterEnd(), actions);
  } else if (teardown_.closing()) {
    receive_.AskRefused(ask, Outcome::kShutDown);
  } else {
    receive_.Ask(ask);
  }
}

void Connection::On(const AskCancel& ask, Actions& actions) {
  const bool abort = ask.mode == CancelMode::kAbortConnection;
  const auto sending = send_.Cancel(ask.operation, ask.outcome, actions);
  if (sending == SendHalf::CancelAnswer::kBegun && abort) {
    Fail(Outcome::kLocalAbort, "a send that had begun was cancelled", actions);
  }
  if (sending != SendHalf::CancelAnswer::kUnknown) return;
  const auto receiving = receive_.Cancel(ask.operation, ask.outcome, actions);
  if (receiving == ReceiveHalf::CancelAnswer::kFull && abort) {
    Fail(Outcome::kLocalAbort, "a receive that had begun was cancelled", actions);
  }
}

void Connection::On(const AskShutdown& ask, Actions& actions) {
  if (phase_ == Phase::kClosed) {
    FinishNow(ask.operation, cause_, actions);
  } else {
    teardown_.OnAskShutdown(ask);
  }
}

void Connection::On(const AskClose& ask, Actions& actions) {
  if (reported_closed_) {
    FinishNow(ask.operation, ask.abort ? Outcome::kDone : cause_, actions);
    return;
  }
  teardown_.OnAskClose(ask, AddSaturating(now_, config_.linger));
  if (phase_ == Phase::kClosed) {
    MaybeReportClosed(actions);
  } else if (ask.abort) {
    Fail(Outcome::kLocalAbort, "the application aborted the connection", actions);
  } else if (phase_ < Phase::kEstablished) {
    Fail(Outcome::kLocalAbort, "closed before it was connected", actions);
  } else if (IsOpen(phase_) && (receive_.has_unread() || reader_.active())) {
    Fail(Outcome::kLocalAbort, "closed with unread data", actions);  // [13.2]
  } else if (phase_ != Phase::kAborting) {
    receive_.FinishAll(Outcome::kShutDown, actions);
  }
}

// --- answers and timers ---

void Connection::On(const Exposed& exposed, Actions& actions) {
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) {
    source_.OnExposeFailed(exposed.advert);  // too late: nobody will be told of it
    return;
  }
  if (!ESDP_CHECK(source_.OnExposed(exposed))) {
    Fail(Outcome::kInternal, "Exposed: not asked", actions);
    return;
  }
  // Nothing was sent since the offer, so credit and slot are still there.
  const uint64_t begin = send_.emitted();
  Send& send = NewSend(source_.Message(), actions);
  const uint64_t number = send_.TakeAdvert(source_.range(), send);
  Stamp(send, SendKind::kPayload, false);
  send_.OnPosted(send.message.base.sequence, counters_);
  source_.OnPosted(number, begin);
  ++counters_.source_adverts_sent;
}

void Connection::On(const ExposeFailed& failed, Actions& actions) {
  const bool asked = source_.OnExposeFailed(failed.advert);
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(asked)) {
    Fail(Outcome::kInternal, "ExposeFailed: not asked", actions);
    return;
  }
  send_.OnExposeFailed();
  ++counters_.expose_failures;
}

void Connection::On(const Withdrawn& withdrawn, Actions&) { source_.OnWithdrawn(withdrawn.advert); }

void Connection::On(const TimerFired& fired, Actions& actions) {
  if (fired.timer == Timer::kAcknowledge) {
    acknowledge_armed_ = false;
    acknowledgement_due_ = acknowledge_at_ && *acknowledge_at_ <= now_;
    return;
  }
  close_armed_ = kTimeInfinite;
  if (teardown_.LingerEnded(now_)) {
    Fail(Outcome::kLocalAbort, "the time to close in order ran out", actions);
    teardown_.StopWaiting();
  } else if (phase_ == Phase::kLastAck && teardown_.WaitEnded(now_)) {
    Move(PhaseCue::kWaitEnded);
    teardown_.WaitForPeer(kTimeInfinite);
  }
}

// --- the state as a whole ---

bool Connection::Holds() const {
  if (credits_.posted() > config_.receive_buffers) return false;
  if (posted_sends_.size() + reader_.reads_in_flight() > config_.send_work_max) return false;
  const bool quiet =
      !source_.outstanding() || send_.NextPayload(true) != SendHalf::Next::kRemainder;
  return quiet && credits_.Holds() && send_.Holds() && source_.Holds() && receive_.Holds() &&
         reader_.Holds();
}

uint64_t Connection::digest() const {
  Digest digest;
  digest.Add(static_cast<uint8_t>(phase_)).Add(static_cast<uint8_t>(cause_)).Add(reads_out_max_);
  peer_.AddTo(digest);
  credits_.AddTo(digest);
  send_.AddTo(digest);
  source_.AddTo(digest);
  receive_.AddTo(digest);
  reader_.AddTo(digest);
  teardown_.AddTo(digest);
  digest.Add(posted_sends_.size()).Add(early_.size());
  for (const SendKind kind : posted_sends_) digest.Add(static_cast<uint8_t>(kind));
  for (const MessageArrived& arrived : early_) digest.Add(arrived.message.base.sequence);
  digest.Add(speaks_first_).Add(waits_for_first_).Add(resize_refusal_owed_).Add(stalled_);
  digest.Add(acknowledgement_due_).Add(disconnect_asked_).Add(reported_closed_);
  const Time acknowledge_at = acknowledge_at_.value_or(kTimeInfinite);
  digest.Add(static_cast<uint64_t>(acknowledge_at.time_since_epoch().count()));
  digest.Add(acknowledge_armed_);
  digest.Add(static_cast<uint64_t>(close_armed_.time_since_epoch().count()));
  return digest.value();
}

}  // namespace esdp::sdp
