#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// One step: an input, what follows from it, and the invariants. This is what each message costs, so
// it is one function to the compiler, and what is rare stands elsewhere. What leaves does so in
// this order: answers to the peer, payload, DisConn, news of credits.

namespace esdp::sdp {

// --- what leaves ---

inline void Connection::PostPayload(SendQueue::Next next, Actions& actions) {
  Send& send = NewSend(wire::Data{}, actions);
  if (next == SendQueue::Next::kRemainder) {
    send_.TakeRemainder(send);
  } else if (next == SendQueue::Next::kCopied) {
    send_.TakeCopied(send);
  } else {
    send_.TakeGathered(send);
  }
  NoteUrgentLeft(send.message.base);
  Stamp(send, SendKind::kPayload, false);
  OnPayloadPosted(send.message.base.sequence);
}

void Connection::SendPayload(Actions& actions) {
  if (send_.wants_advert()) send_.LetAdvertise(MayAdvertise());
  bool waits_for_credit = false;
  // [R5.9, R5.11] No payload while SrcAvails are outstanding, but the remainder of one that was
  // refused.
  while (writer_.idle() || !WritesHavePrecedence(actions)) {
    const SendQueue::Next next = send_.NextPayload(teardown_.shut());
    if (next == SendQueue::Next::kNothing || !HasSlot(kWorkSlotsForControl)) break;
    if (next == SendQueue::Next::kAdvert && !MayOffer()) break;
    if (!credits_.MaySendPayload()) {
      waits_for_credit = true;
      break;
    }
    if (next == SendQueue::Next::kAdvert) {
      OfferAdvert(actions);
      break;
    }
    stalled_ = false;
    PostPayload(next, actions);
    if (send_.may_copy()) send_.CopyWaiting(actions, counters_);
    if (send_.drained() && writer_.idle()) break;
  }
  if (waits_for_credit && !stalled_) ++counters_.credit_stalls;
  stalled_ = waits_for_credit;
}

inline void Connection::CopySmallSends(Actions& actions) {
  if (send_.wants_advert()) send_.LetAdvertise(MayAdvertise());
  if (send_.may_copy()) send_.CopyWaiting(actions, counters_);
}

// False: nothing more may leave now.
bool Connection::SendBeforePayload(Actions& actions) {
  if (speaks_first_ && MaySendControl()) {
    SendBare(actions);
    speaks_first_ = false;
  }
  CopySmallSends(actions);
  // Behind both DisConns nobody needs to hear of us any more.
  if (waits_for_first_ || phase_ == Phase::kLastAck) return false;
  if (Freezes()) {
    SuspendOut(actions);
    return false;
  }
  if (reader_.active()) SendAnswers(actions);
  if (resize_in_.due() || !resize_out_.settled()) SendResize(actions);
  if (source_.cancel_owed()) SendSourceCancel(actions);
  if (OwesSinkAnswers()) SendSinkAnswers(actions);
  if (!ModesRest() && MayUseModes()) SendModeChanges(actions);
  if (MayOfferSink()) OfferSink(actions);
  return !sink_.offering();
}

void Connection::SendOut(Actions& actions) {
  if (source_.offering() || sink_.offering()) return;  // their adverts have the next MSeq
  if (!SendBeforePayload(actions)) return;
  if (!send_.drained() || writer_.in_process()) SendPayload(actions);
  if (source_.offering()) return;
  if (send_.has_urgent()) SendUrgentNotice(actions);
  if (teardown_.shut()) SendDisConn(actions);
  SendUpdate(actions);
}

// Of what may follow from an input, all that can while the connection is calm.
inline void Connection::AdvanceCalmly(Actions& actions) {
  if (!source_.offering()) {  // its advert has the next MSeq
    if (send_.has_pieces()) CopySmallSends(actions);
    if (reader_.active()) SendAnswers(actions);
    if (!send_.drained()) SendPayload(actions);
    if (!source_.offering() && (credits_.UpdateDue() != Credits::Update::kNone || stalled_)) {
      SendUpdate(actions);
    }
  }
  send_.FinishReady(counters_, actions);
}

void Connection::Advance(Actions& actions) {
  if (IsOpen(phase_)) {  // [R2.7.3]
    SendOut(actions);
    if (buffers_.window().due()) ChangeWindow(actions);
  } else if (phase_ == Phase::kTimeWait) {
    Deliver(actions);
  } else if (phase_ == Phase::kSuspended || phase_ == Phase::kResuming) {
    AdvanceSuspended(actions);
  } else if (phase_ == Phase::kClosed) {
    if (!reported_closed_ || cause_ == Outcome::kDone) Deliver(actions);
    MaybeReportClosed(actions);
    return;
  }
  if (phase_ != Phase::kAborting && phase_ >= Phase::kEstablished) {
    send_.FinishReady(counters_, actions);
    if (teardown_.disconn_left() && send_.empty()) {
      teardown_.FinishShutdowns(Outcome::kDone, actions);
    }
  }
  if (phase_ == Phase::kTimeWait) MaybeDisconnect(actions);
}

// --- what comes in ---

bool Connection::MaySendImmediate(const AskSend& ask) const {
  return send_.MayLeaveImmediate(ask) && calm_ && !reader_.active() && !ask.adaptive &&
         HasSlot(kWorkSlotsForControl) && credits_.MaySendPayload();
}

inline void Connection::SendImmediate(const AskSend& ask, Actions& actions) {
  stalled_ = false;
  const SendBuffer buffer = send_.CopyImmediate(ask, actions, counters_);
  Send& send = NewSend(wire::Data{}, actions);
  send.send_buffer = buffer;
  send.copied_bytes = ask.piece.length;
  Stamp(send, SendKind::kPayload, false);
  (void)send_.OnPosted(send.message.base.sequence, counters_);
  writer_.OnPayloadPosted();
  send_.FinishImmediate(ask, actions, counters_);
}

inline void Connection::On(const AskSend& ask, Actions& actions) {
  if (MaySendImmediate(ask)) return SendImmediate(ask, actions);
  if (ask.urgent) calm_ = false;
  if (phase_ == Phase::kClosed) {
    if (!ask.more) FinishNow(ask.piece.operation, OutcomeAfterEnd(), actions);
  } else if (teardown_.shut()) {
    send_.AskRefused(ask, Outcome::kShutDown);
  } else if (ask.adaptive) {
    AskAdaptiveSend(ask);
  } else {
    send_.Ask(ask);
  }
}

inline void Connection::On(const AskReceive& ask, Actions& actions) {
  if (phase_ == Phase::kClosed && (cause_ != Outcome::kDone || teardown_.closing())) {
    if (!ask.more) FinishNow(ask.piece.operation, OutcomeAfterEnd(), actions);
  } else if (teardown_.closing()) {
    receive_.AskRefused(ask, Outcome::kShutDown);
  } else {
    receive_.Ask(ask);
    adverts_crossed_ = false;
  }
}

inline void Connection::On(const SendFinished&, Actions& actions) {
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(!posted_sends_.empty())) {
    Fail(Outcome::kInternal, "SendFinished: no Send is posted", actions);
    return;
  }
  const SendKind kind = posted_sends_.TakeFront();
  if (kind == SendKind::kPayload) send_.OnPayloadFinished();
  if (kind == SendKind::kDisConn) teardown_.OnDisConnLeft();
}

// Those that come with each message first, and they keep what is calm.
inline void Connection::Take(const Input& input, Actions& actions) {
  if (const auto* arrived = std::get_if<MessageArrived>(&input)) return On(*arrived, actions);
  if (const auto* sent = std::get_if<SendFinished>(&input)) return On(*sent, actions);
  if (const auto* send = std::get_if<AskSend>(&input)) return On(*send, actions);
  if (const auto* receive = std::get_if<AskReceive>(&input)) return On(*receive, actions);
  if (const auto* exposed = std::get_if<Exposed>(&input)) return On(*exposed, actions);
  if (const auto* withdrawn = std::get_if<Withdrawn>(&input)) return On(*withdrawn, actions);
  if (const auto* read = std::get_if<ReadFinished>(&input)) return On(*read, actions);
  TakeRare(input, actions);
}

void Connection::TakeRare(const Input& input, Actions& actions) {
  calm_ = false;
  std::visit([&](const auto& it) { On(it, actions); }, input);
}

// --- the whole ---

inline bool Connection::InvariantsHold() const {
  if (!buffers_.InvariantsHold(credits_)) return false;
  if (WorkPosted() > config_.send_work_max) return false;
  if (source_.count() + sink_.outstanding() > peer_.max_adverts) return false;
  if (!credits_.InvariantsHold() || !send_.InvariantsHold() || !source_.InvariantsHold() ||
      !receive_.InvariantsHold())
    return false;
  if (!reader_.InvariantsHold()) return false;
  if (calm_) return true;  // nothing of the rest was touched
  return sink_.outstanding() == receive_.advertised() && sink_.InvariantsHold() &&
         writer_.InvariantsHold() && resize_in_.InvariantsHold();
}

void Connection::Step(const Input& input, Time now, Actions& actions) {
  now_ = now;
  const size_t first = actions.size();
  const bool answered = !(source_.offering() || sink_.offering()) ||
                        std::holds_alternative<Exposed>(input) ||
                        std::holds_alternative<ExposeFailed>(input);
  if (!ESDP_CHECK(answered)) Fail(Outcome::kInternal, "Expose: not answered first", actions);
  Take(input, actions);
  const bool open = calm_ || IsOpen(phase_);
  if (!calm_ && open && teardown_.closing()) DiscardInbound(actions);
  if (open &&
      (receive_.may_copy() || reader_.active() || receive_.MayFinish(teardown_.peer_shut()))) {
    Deliver(actions);
  }
  // With two sends waiting it may be time for another mode.
  if (send_.has_pieces() && send_.waiting() >= 2) calm_ = false;
  if (calm_) {
    AdvanceCalmly(actions);
  } else {
    Advance(actions);
    if (must_end_) EndOrAbort(actions);
  }
  if (!ESDP_CHECK(InvariantsHold()))
    Fail(Outcome::kInternal, "an invariant does not hold", actions);
  if (!(calm_ ? AcknowledgeTimerStands() : TimersStand())) ArmTimers(actions);
#ifndef NDEBUG
  if (!ESDP_CHECK(!calm_ || FindCalm())) Fail(Outcome::kInternal, "calm, and is not", actions);
#endif
  if (!calm_) calm_ = FindCalm();
  if (threshold_.waits()) LearnFromEnds(actions, first);
}

}  // namespace esdp::sdp
