#include <optional>
#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/connection.h"
#include "impl/sdp/halves_step.h"

// One step: an input, what follows from it, and the invariants. This is what each message costs, so
// it is one function to the compiler, and what is rare stands behind it.

namespace esdp::sdp {
namespace {

template <typename... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};
template <typename... Each>
Overloaded(Each...) -> Overloaded<Each...>;

}  // namespace

// --- what comes in ---

// [R17.1] What the peer says: the rows of section 17, each handed to who knows.
bool Connection::On(const MessageArrived& arrived, Actions& actions) {
  if (!IsOpen(phase_)) return ReceiveNotOpen(arrived, actions), false;
  if (halves_.outgoing().credits().posted() == 0) {
    Fail(Outcome::kInternal, "a message arrived without a posted receive", actions);
    return false;
  }
  const char* unexpected = suspend_.peer_is_silent() ? suspend_.CheckSilence(arrived) : nullptr;
  const char* violation = halves_.OnHeader(arrived, unexpected, actions);
  if (violation != nullptr) {
    Fail(Outcome::kPeerProtocol, violation, actions);
    return false;
  }
  const wire::Body& body = arrived.message.body;
  const bool is_data = std::holds_alternative<wire::Data>(body);
  const bool bare = is_data && arrived.payload_length == 0;
  bool steady = arrived.message.base.flags == 0;
  if (!bare && halves_.EndsTurn(arrived)) steady = false;
  Halves::Arrival arrival;
  if (is_data) {
    if (!bare) arrival = halves_.OnData(arrived, teardown_.peer_shut(), actions);  // [R4.4.5, R6.4]
  } else if (std::holds_alternative<wire::SrcAvail>(body)) {
    arrival = halves_.OnSrcAvail(arrived, teardown_.peer_shut(), actions);
  } else if (std::holds_alternative<wire::RdmaRdCompl>(body)) {
    arrival.violation = halves_.OnRdmaRdCompl(arrived, actions);
  } else {
    steady = false;
    arrival = ReceiveRare(arrived, actions);
  }
  if (arrival.violation != nullptr) [[unlikely]] {
    Fail(Outcome::kPeerProtocol, arrival.violation, actions);
    return false;
  }
  // What is rare may have ended it.
  if (steady || IsOpen(phase_)) halves_.OnDone(arrived.buffer, arrival.keeps_buffer, actions);
  return steady;
}

bool Connection::MaySendImmediate(const AskSend& ask) const {
  return owed_.empty() && halves_.MaySendImmediate(ask);
}

inline bool Connection::On(const AskSend& ask, Actions& actions) {
  if (MaySendImmediate(ask)) {
    halves_.SendImmediate(ask, actions);
    return true;
  }
  if (phase_ != Phase::kClosed) {
    halves_.Ask(ask, teardown_.shut());
  } else if (!ask.more) {
    FinishNow(ask.piece.operation, teardown_.outcome(), actions);
  }
  return !ask.urgent;
}

inline void Connection::On(const AskReceive& ask, Actions& actions) {
  if (phase_ != Phase::kClosed || (teardown_.input_kept() && !teardown_.closing())) {
    halves_.Ask(ask, teardown_.closing());
  } else if (!ask.more) {
    FinishNow(ask.piece.operation, teardown_.outcome(), actions);
  }
}

inline void Connection::On(const SendFinished&, Actions& actions) {
  if (IsOver(phase_)) return;
  if (!ESDP_CHECK(halves_.outgoing().AnythingPosted())) {
    return Fail(Outcome::kInternal, "SendFinished: no Send is posted", actions);
  }
  if (halves_.OnSendFinished() == Outgoing::Kind::kDisConn) teardown_.OnDisConnLeft();
}

void Connection::On(const ReadFinished&, Actions& actions) {
  if (phase_ == Phase::kClosed) return;
  FailIf(Outcome::kInternal, halves_.OnReadFinished(), actions);
}

void Connection::On(const Exposed& exposed, Actions& actions) {
  FailIf(Outcome::kInternal, halves_.OnExposed(exposed, IsOver(phase_), actions), actions);
}

// Those that come with each message first.
inline bool Connection::Take(const Input& input, Actions& actions) {
  if (const auto* arrived = std::get_if<MessageArrived>(&input)) return On(*arrived, actions);
  if (const auto* sent = std::get_if<SendFinished>(&input)) return On(*sent, actions), true;
  if (const auto* send = std::get_if<AskSend>(&input)) return On(*send, actions);
  if (const auto* receive = std::get_if<AskReceive>(&input)) return On(*receive, actions), true;
  if (const auto* exposed = std::get_if<Exposed>(&input)) return On(*exposed, actions), true;
  if (const auto* withdrawn = std::get_if<Withdrawn>(&input)) return On(*withdrawn, actions), true;
  if (const auto* read = std::get_if<ReadFinished>(&input)) return On(*read, actions), true;
  TakeRare(input, actions);
  return false;
}

// --- what leaves ---

// What leaves, in its order. Not `steady`: what is rare too.
[[gnu::always_inline]] inline void Connection::SendOwed(bool steady, Actions& actions) {
  if (!steady) halves_.SendFirst(owed_, actions);
  const bool may_advertise = halves_.CopySmall(actions);
  if (!steady && !GiveWay(may_advertise, actions)) return;
  const bool more = steady ? halves_.SendDue(true, may_advertise, kStreaming, owed_, actions)
                           : halves_.SendDue(false, may_advertise, TermsNow(), owed_, actions);
  if (!more) return;
  if (!steady && owed_.Has(Duty::kDisConn) && !SendDisConn(actions)) return;
  halves_.SendCredits(steady, actions);
}

// --- the whole ---

// What leaves and what ends, behind an input and what it has delivered. Compiled for each case, of
// which the steady one is what each message costs.
[[gnu::always_inline]] inline void Connection::Advance(bool steady, Actions& actions) {
  if (steady || IsOpen(phase_)) {  // [R2.7.3]
    SendOwed(steady, actions);
    if (!steady && owed_.Has(Duty::kWindow) && !MoveGoesFirst()) halves_.AskForWindow(actions);
  } else {
    AdvanceNotOpen(actions);
  }
  if (steady || (phase_ >= Phase::kEstablished && !IsOver(phase_))) halves_.FinishReady(actions);
  if (!steady) FinishRare(actions);
  halves_.NoteAnnouncement(actions);
  if (!ESDP_CHECK(halves_.InvariantsHold()))
    Fail(Outcome::kInternal, "an invariant does not hold", actions);
  if (!(steady ? halves_.outgoing().TimerStands() : TimersStand())) ArmTimers(actions);
  // A half in Pipelined keeps a duty: the next step asks anew, whatever else has changed.
  if (!steady && !halves_.pipelined()) NoteDuties();
}

void Connection::AdvanceRare(Actions& actions) { Advance(false, actions); }

void Connection::DeliverRare(Actions& actions) {
  NoteDuties();
  if (!IsOpen(phase_)) return;
  if (teardown_.closing()) halves_.Discard(actions);
  if (halves_.MayDeliver(teardown_.peer_shut())) Deliver(actions);
}

void Connection::Step(const Input& input, Time now, Actions& actions) {
  actions.clear();
  halves_.outgoing().BeginStep(now);
  const bool answered = !halves_.offering() || std::holds_alternative<Exposed>(input) ||
                        std::holds_alternative<ExposeFailed>(input);
  if (!ESDP_CHECK(answered)) Fail(Outcome::kInternal, "Expose: not answered first", actions);
  bool steady = Take(input, actions) && owed_.empty();
  if (!steady) {
    DeliverRare(actions);
  } else if (halves_.MayDeliver(/*end_of_stream=*/false)) {
    halves_.Deliver(kStreaming, owed_, actions);
    steady = owed_.empty();
  }
  if (steady) {
    Advance(true, actions);
#ifndef NDEBUG
    if (!ESDP_CHECK(!owed_.empty() || AskWhatIsOwed().empty()))
      Fail(Outcome::kInternal, "a steady step has left a duty", actions);
#endif
  } else {
    AdvanceRare(actions);
  }
  if (readiness_watch_.on()) [[unlikely]]
    readiness_watch_.Tell(readiness(), halves_.inbound().waiting(), actions);
  halves_.LearnFromEnds(actions);
}

// --- what is rare: what comes in ---

void Connection::TakeRare(const Input& input, Actions& actions) {
  const auto take = Overloaded{
      [&](const WriteFinished&) {
        if (!IsOver(phase_)) FailIf(Outcome::kInternal, halves_.OnWriteFinished(), actions);
      },
      [&](const ExposeFailed& failed) {
        FailIf(Outcome::kInternal, halves_.OnExposeFailed(failed, IsOver(phase_)), actions);
      },
      [&](const ReceivesPrepared& prepared) {
        halves_.OnPrepared(prepared, TermsNow().may_post, actions);
      },
      [&](const MessageRefused& refused) {
        Fail(Outcome::kPeerProtocol, refused.reason, actions);  // [R3.10.4]
      },
      [&](const AskMode& ask) {
        handshake_.Want(ask);
        halves_.Want(ask);
      },
      [&](const WatchReadiness&) { readiness_watch_.Start(); },
      [&](const auto& other) { On(other, actions); }};
  std::visit(take, input);
}

void Connection::ReceiveNotOpen(const MessageArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kHelloSent || phase_ == Phase::kHelloAckSent || phase_ == Phase::kResuming) {
    handshake_.Keep(arrived);  // [R2.7.4]
  } else if (phase_ == Phase::kSuspended) {
    // The queue pair is being ended: news of credits may still have been on their way.
    FailIf(Outcome::kPeerProtocol, suspend_.CheckSilence(arrived), actions);
  }
}

// What the connection does not know is the halves'.
Halves::Arrival Connection::ReceiveRare(const MessageArrived& arrived, Actions& actions) {
  const wire::Body& body = arrived.message.body;
  const char* violation = nullptr;
  if (std::holds_alternative<wire::DisConn>(body)) {
    violation = OnDisConn(actions);
  } else if (std::holds_alternative<wire::AbortConn>(body)) {
    Fail(Outcome::kPeerReset, "AbortConn: the peer aborted the connection", actions);
  } else if (const auto* suspend = std::get_if<wire::SuspComm>(&body)) {
    violation = OnSuspComm(*suspend);
  } else if (std::holds_alternative<wire::SuspCommAck>(body)) {
    if (suspend_.OnSuspCommAck()) Move(PhaseCue::kSuspCommAckArrived);
  } else if (std::holds_alternative<wire::Hello>(body)) {
    violation = "Hello: the connection is established";  // [R17.2]
  } else if (std::holds_alternative<wire::HelloAck>(body)) {
    violation = "HelloAck: the connection is established";
  } else {
    return halves_.OnRare(arrived, TermsNow(), actions);
  }
  return {violation, false};
}

// --- what is rare: what is owed, and what leaves ---

Halves::Terms Connection::TermsNow() const {
  Halves::Terms terms;
  terms.may_read = IsOpen(phase_) && !suspend_.freezes();
  terms.may_read_last = IsOpen(phase_) && suspend_.owes_susp_comm();  // a move waits for a spare
  // A new queue pair's receives are those that its Hello announces, until it is ready.
  terms.may_post = phase_ <= Phase::kSuspending;
  terms.shut = teardown_.shut();
  terms.disconn_sent = teardown_.disconn_sent();
  terms.peer_shut = teardown_.peer_shut();
  terms.closing = teardown_.closing();
  return terms;
}

Owed Connection::AskWhatIsOwed() const {
  Owed owed;
  owed.Set(Duty::kPhase, phase_ != Phase::kEstablished);
  owed.Set(Duty::kSuspend, suspend_.freezes());
  owed.Set(Duty::kDisConn, teardown_.shut() || teardown_.peer_shut());
  owed.Set(Duty::kDeadlines, !TimersStand() || teardown_.timer_set() || suspend_.timer_set());
  halves_.AskWhatIsOwed(owed);
  return owed;
}

// No urgent notice rides behind our SuspComm, whose queue pair may end before it leaves.
void Connection::NoteDuties() {
  owed_ = AskWhatIsOwed();
  halves_.NoteDuties(owed_);
  if (suspend_.initiator()) halves_.outgoing().SetUrgentAhead(std::nullopt);
}

// To the peer's first message, to the end [R13.2.9], and to a move.
bool Connection::GiveWay(bool may_advertise, Actions& actions) {
  if (halves_.outgoing().waits_for_first() || phase_ == Phase::kLastAck) return false;
  if (!MoveGoesFirst()) return true;
  const size_t before = actions.size();
  SuspendOut(may_advertise, actions);
  if (actions.size() != before) NoteDuties();
  return false;
}

// [R13.1.1, R13.1.2] Only after all data, and adverts to their last byte. False: nothing else may
// leave; behind both nobody needs to hear of us any more.
bool Connection::SendDisConn(Actions& actions) {
  const bool due = teardown_.shut() && !teardown_.disconn_sent() && halves_.outbound().done() &&
                   halves_.outgoing().MaySendControl();
  if (!due || !Move(PhaseCue::kDisConnSent)) return phase_ != Phase::kLastAck;
  halves_.outgoing().Post(wire::DisConn{}, Outgoing::Kind::kDisConn, actions, halves_.counters());
  teardown_.OnDisConnPosted();
  halves_.OnDisConnPosted();
  if (phase_ == Phase::kLastAck) {
    teardown_.WaitForPeer(AddSaturating(halves_.now(), handshake_.config().close_wait));
  }
  NoteDuties();
  return phase_ != Phase::kLastAck;
}

// --- what is rare: what ends ---

// Without a queue pair that carries messages.
void Connection::AdvanceNotOpen(Actions& actions) {
  if (phase_ == Phase::kTimeWait || phase_ == Phase::kSuspended || phase_ == Phase::kResuming) {
    Deliver(actions);
    // [R12.3] The responder ends the queue pair, when SuspCommAck has left.
    if (phase_ != Phase::kSuspended || !suspend_.responder()) return;
    if (!halves_.outgoing().AnythingPosted()) teardown_.Disconnect(actions);
  } else if (phase_ == Phase::kClosed) {
    if (!teardown_.reported() || teardown_.input_kept()) Deliver(actions);
    MaybeReportClosed(actions);
  }
}

// What may end with a step that was more than the streams.
void Connection::FinishRare(Actions& actions) {
  if (phase_ >= Phase::kEstablished && !IsOver(phase_) && WaitsForPeerAlone()) {
    teardown_.FinishShutdowns(Outcome::kDone, actions);
  }
  // [R13.2.5] Not before our own DisConn has left, or what is behind it on the queue is lost.
  if (phase_ == Phase::kTimeWait && teardown_.disconn_left()) teardown_.Disconnect(actions);
  if (!must_end_) return;
  // What was cancelled to end with this step, and has not, takes the connection with it.
  const char* reason = halves_.WhyNotEnded(*must_end_);
  if (suspend_.Has(must_end_->operation)) reason = "a move that had begun was cancelled";
  must_end_.reset();
  FailIf(Outcome::kLocalAbort, reason, actions);
}

bool Connection::TimersStand() const {
  return IsOpen(phase_) && teardown_.TimerStands() && suspend_.TimerStands() &&
         halves_.TimersStand();
}

void Connection::ArmTimers(Actions& actions) {
  suspend_.ArmTimer(IsAlive(phase_), actions);
  halves_.ArmTimers(IsOver(phase_), actions);
  teardown_.ArmTimer(IsOver(phase_), actions);
}

}  // namespace esdp::sdp
