#include <algorithm>
#include <optional>
#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// One step: an input, what follows from it, and the invariants. This is what each message costs, so
// it is one function to the compiler, and what is rare stands elsewhere.

namespace esdp::sdp {

// --- what comes in ---

inline const char* Connection::CheckArrival(const MessageArrived& arrived) const {
  const wire::Body& body = arrived.message.body;
  if (!std::holds_alternative<wire::Data>(body) && arrived.payload_length > 0 &&
      !std::holds_alternative<wire::SrcAvail>(body) &&
      !std::holds_alternative<wire::SinkAvail>(body)) {
    return "Len: this message carries no user bytes";
  }
  // [R16.3] Only the message that completes an advert may invalidate, and only if we said so.
  if (arrived.invalidated_key && (!handshake_.config().remote_invalidate ||
                                  (!std::holds_alternative<wire::RdmaRdCompl>(body) &&
                                   !std::holds_alternative<wire::RdmaWrCompl>(body)))) {
    return "RKey: invalidated by a message that may not";
  }
  return suspend_.peer_is_silent() ? suspend_.CheckSilence(arrived) : nullptr;
}

// [R17.1] What the peer says: the rows of section 17, each handed to the half that knows.
inline bool Connection::Receive(const MessageArrived& arrived, Actions& actions) {
  const wire::Message& message = arrived.message;
  Credits& credits = outgoing_.credits();
  if (credits.posted() == 0) {
    Fail(Outcome::kInternal, "a message arrived without a posted receive", actions);
    return false;
  }
  credits.OnReceiveTaken();  // [R4.2.4]
  inbound_.buffers().OnReceiveTaken();
  ++counters_.messages_received;
  const bool is_data = std::holds_alternative<wire::Data>(message.body);
  const bool bare = is_data && arrived.payload_length == 0;
  const char* violation = credits.OnHeader(message.base, bare);
  if (violation == nullptr) violation = CheckArrival(arrived);
  if (violation == nullptr && message.base.flags != 0) {
    violation = inbound_.urgent().OnMessage(message.base.flags, is_data && !bare, actions);
  }
  if (violation != nullptr) {
    Fail(Outcome::kPeerProtocol, violation, actions);
    return false;
  }
  outgoing_.OnMessageArrived();
  outbound_.OnAcknowledged(credits.acknowledged_by_peer());
  modes_.OnAcknowledged(credits.acknowledged_by_peer());

  bool steady = message.base.flags == 0;
  if (!bare && inbound_.buffers().window().in_turn() &&
      inbound_.buffers().EndsTurn(arrived, outgoing_.now())) {
    steady = false;
  }
  bool keeps_buffer = false;
  if (is_data) {
    if (!bare && !RefusesPayload(actions)) {  // [R4.4.5, R6.4]
      const auto arrival = inbound_.OnData(arrived, outgoing_, actions, counters_);
      if (arrival.violation != nullptr) Fail(Outcome::kPeerProtocol, arrival.violation, actions);
      keeps_buffer = arrival.keeps_buffer;
    }
  } else if (const auto* advert = std::get_if<wire::SrcAvail>(&message.body)) {
    keeps_buffer = OnSrcAvail(*advert, arrived, actions);
  } else if (std::holds_alternative<wire::RdmaRdCompl>(message.body)) {
    OnRdmaRdCompl(arrived, actions);
  } else {
    steady = false;
    keeps_buffer = ReceiveRare(arrived, actions);
  }
  if (IsOpen(phase_)) {
    inbound_.buffers().OnDone(arrived.buffer, keeps_buffer, outgoing_.credits(), actions);
  }
  return steady;
}

inline bool Connection::OnSrcAvail(const wire::SrcAvail& advert, const MessageArrived& arrived,
                                   Actions& actions) {
  if (RefusesPayload(actions)) return false;
  // [R17.5, R5.10] What the mode of the half allows.
  const AdvertAllowance allowance = modes_.permits().source_adverts_accepted;
  InboundHalf::Arrival arrival;
  if (allowance == AdvertAllowance::kNone) {
    arrival.violation = "SrcAvail: the half is Buffered";
  } else if (allowance == AdvertAllowance::kMany && arrived.payload_length > 0) {
    arrival.violation = "SrcAvail: user bytes in Pipelined";
  } else {
    arrival = inbound_.OnSrcAvail(advert, arrived,
                                  modes_.SourceAdvertsHeldMax(handshake_.config().max_adverts),
                                  outgoing_, actions, counters_);
  }
  if (arrival.violation != nullptr) Fail(Outcome::kPeerProtocol, arrival.violation, actions);
  return arrival.keeps_buffer;
}

void Connection::OnRdmaRdCompl(const MessageArrived& arrived, Actions& actions) {
  const auto& completion = std::get<wire::RdmaRdCompl>(arrived.message.body);
  const auto read =
      outbound_.OnRdmaRdCompl(completion.length, arrived.invalidated_key, actions, counters_);
  if (read.violation != nullptr) return Fail(Outcome::kPeerProtocol, read.violation, actions);
  if ((arrived.message.base.flags & wire::kFlagReqPipe) != 0) modes_.OnHint();
  if (read.complete) modes_.OnAdvertRead();
}

bool Connection::On(const MessageArrived& arrived, Actions& actions) {
  if (IsOpen(phase_)) return Receive(arrived, actions);
  ReceiveWhileNotOpen(arrived, actions);
  return false;
}

bool Connection::MaySendImmediate(const AskSend& ask) const {
  return outbound_.MayLeaveImmediate(ask) && owed_.empty() && phase_ == Phase::kEstablished &&
         !inbound_.reads() && outgoing_.HasSlot(kWorkSlotsForControl) && outgoing_.MaySendPayload();
}

inline bool Connection::On(const AskSend& ask, Actions& actions) {
  if (MaySendImmediate(ask)) {
    outbound_.SendImmediate(ask, outgoing_, actions, counters_);
    return true;
  }
  if (phase_ == Phase::kClosed) {
    if (!ask.more) FinishNow(ask.piece.operation, teardown_.outcome(), actions);
  } else if (teardown_.shut()) {
    outbound_.AskRefused(ask, Outcome::kShutDown);
  } else {
    outbound_.Ask(ask, outgoing_.now(), counters_);
  }
  return !ask.urgent;
}

inline void Connection::On(const AskReceive& ask, Actions& actions) {
  if (phase_ == Phase::kClosed && (!teardown_.in_order() || teardown_.closing())) {
    if (!ask.more) FinishNow(ask.piece.operation, teardown_.outcome(), actions);
  } else if (teardown_.closing()) {
    inbound_.AskRefused(ask, Outcome::kShutDown);
  } else {
    inbound_.Ask(ask);
  }
}

inline void Connection::On(const SendFinished&, Actions& actions) {
  if (is_over()) return;
  if (!ESDP_CHECK(outgoing_.AnythingPosted())) {
    return Fail(Outcome::kInternal, "SendFinished: no Send is posted", actions);
  }
  const Outgoing::Kind kind = outgoing_.OnSendFinished();
  if (kind == Outgoing::Kind::kPayload) {
    outbound_.OnPayloadFinished();
  } else if (kind == Outgoing::Kind::kDisConn) {
    teardown_.OnDisConnLeft();
  }
}

void Connection::On(const ReadFinished&, Actions& actions) {
  if (phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(inbound_.read_in_flight())) {
    return Fail(Outcome::kInternal, "ReadFinished: no Read is posted", actions);
  }
  inbound_.OnReadFinished(outgoing_, counters_);
}

void Connection::On(const Exposed& exposed, Actions& actions) {
  const bool of_sink = SinkAdverts::Owns(exposed.advert);
  if (is_over()) {  // too late: nobody will be told of it
    of_sink ? inbound_.OnExposeFailed(exposed.advert) : outbound_.OnExposeFailed(exposed.advert);
    return;
  }
  const bool asked = of_sink ? inbound_.OnExposed(exposed)
                             : outbound_.OnExposed(exposed, outgoing_, actions, counters_);
  if (!ESDP_CHECK(asked)) return Fail(Outcome::kInternal, "Exposed: not asked", actions);
  if (!of_sink) return;
  const bool transaction = outbound_.MayRideAlong(outgoing_);
  const auto kind = transaction ? Outgoing::Kind::kPayload : Outgoing::Kind::kControl;
  Send& send = inbound_.PostSinkAvail(kind, outgoing_, actions, counters_);
  if (!transaction) return;
  outbound_.RideAlong(send, counters_);
  ++counters_.transactions_sent;
}

void Connection::On(const Withdrawn& withdrawn, Actions& actions) {
  inbound_.OnWithdrawn(withdrawn.advert, actions);
  outbound_.OnWithdrawn(withdrawn.advert);
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

void Connection::TakeRare(const Input& input, Actions& actions) {
  std::visit([&](const auto& it) { On(it, actions); }, input);
}

// --- what reaches receives ---

void Connection::Deliver(Actions& actions) {
  InboundHalf::DeliveryTerms terms;
  terms.may_read = IsOpen(phase_) && !suspend_.freezes();
  terms.may_read_last = IsOpen(phase_) && suspend_.owes_susp_comm();  // a move waits for a spare
  terms.may_post = MayPostReceives();
  terms.end_of_stream = teardown_.peer_shut();
  terms.has_source_adverts = outbound_.advertised();
  if (inbound_.Deliver(terms, outgoing_, actions, counters_)) {
    outbound_.AskSourceAdvertsBack();
    NoteDuties();
  }
}

// --- what leaves ---

size_t Connection::AdvertRoom() const {
  const size_t out = outbound_.source_adverts() + inbound_.sink_adverts();
  return handshake_.peer().max_adverts - std::min<size_t>(handshake_.peer().max_adverts, out);
}

inline OutboundHalf::SourceTerms Connection::TermsOfSourceAdverts() const {
  if (!outbound_.wants_source_adverts() || !modes_.wants_source_adverts()) return {};
  return {modes_.permits().source_adverts, AdvertRoom(), inbound_.MayBeCrossed()};
}

// Copies small sends that wait. Whether SrcAvails are possible.
inline bool Connection::CopySmall(Actions& actions) {
  const bool may_advertise =
      outbound_.wants_source_adverts() && outbound_.MayAdvertise(TermsOfSourceAdverts());
  outbound_.CopySmall(may_advertise, actions, counters_);
  return may_advertise;
}

// Duties from `first` to `last`. False: nothing else may leave now.
inline bool Connection::SendRare(Duty first, Duty last, bool may_advertise, Actions& actions) {
  return !owed_.HasAny(first, last) || SendDuties(first, last, may_advertise, actions);
}

// What leaves, in its order. Not `steady`: the duties that are rare too.
[[gnu::always_inline]] inline void Connection::SendOwed(bool steady, Actions& actions) {
  if (!steady && !SendRare(Duty::kFirstMessage, Duty::kFirstMessage, false, actions)) return;
  const bool may_advertise = outbound_.has_pieces() && CopySmall(actions);
  if (!steady && !SendRare(Duty::kSilence, Duty::kSuspend, may_advertise, actions)) return;
  if (inbound_.reads()) SendReadAnswers(actions);
  if (!steady && !SendRare(Duty::kResize, Duty::kSinkAnswers, may_advertise, actions)) return;
  if (!steady || (outbound_.has_pieces() && outbound_.waiting() >= 2)) {
    SendModeChanges(may_advertise, actions);
  }
  if (!steady && !SendRare(Duty::kSinkAdvert, Duty::kSinkAdvert, may_advertise, actions)) return;
  if (!outbound_.drained() || (!steady && outbound_.in_process())) {
    outbound_.SendPayload(TermsOfSourceAdverts(), !steady && teardown_.shut(), outgoing_, actions,
                          counters_);
    if (outbound_.offering()) return;  // its advert has the next MSeq
  }
  if (!steady && !SendRare(Duty::kUrgentNotice, Duty::kDisConn, may_advertise, actions)) return;
  if (outgoing_.OwesCredits() || (!steady && owed_.Has(Duty::kCredits))) {
    outgoing_.SendCredits(actions, counters_);
  }
}

// --- the whole ---

inline bool Connection::InvariantsHold() const {
  return outgoing_.InvariantsHold() && outbound_.InvariantsHold() &&
         inbound_.InvariantsHold(outgoing_.credits()) &&
         outbound_.source_adverts() + inbound_.sink_adverts() <= handshake_.peer().max_adverts;
}

// What leaves and what ends, behind an input and what it has delivered. Compiled for each case, of
// which the steady one is what each message costs.
[[gnu::always_inline]] inline void Connection::Advance(bool steady, Actions& actions) {
  if (steady || IsOpen(phase_)) {  // [R2.7.3]
    SendOwed(steady, actions);
    if (!steady && owed_.Has(Duty::kWindow)) ChangeWindow(actions);
  } else {
    AdvanceNotOpen(actions);
  }
  if (steady || (phase_ >= Phase::kEstablished && !is_over())) {
    outbound_.FinishReady(counters_, actions);
  }
  if (!steady) FinishRare(actions);
  if (inbound_.buffers().window().awaits_announcement()) {
    inbound_.buffers().NoteAnnouncement(actions, outgoing_.now());
  }
  if (!ESDP_CHECK(InvariantsHold()))
    Fail(Outcome::kInternal, "an invariant does not hold", actions);
  if (!(steady ? outgoing_.TimerStands() : TimersStand())) ArmTimers(actions);
  // A half in Pipelined keeps a duty: the next step asks anew, whatever else has changed.
  if (!steady && !modes_.pipelined()) NoteDuties();
}

void Connection::AdvanceRare(Actions& actions) { Advance(false, actions); }

void Connection::DeliverRare(Actions& actions) {
  NoteDuties();
  if (!IsOpen(phase_)) return;
  if (teardown_.closing()) inbound_.Discard(outgoing_, actions);
  if (inbound_.MayDeliver(teardown_.peer_shut())) Deliver(actions);
}

void Connection::Step(const Input& input, Time now, Actions& actions) {
  actions.clear();
  outgoing_.BeginStep(now);
  const bool answered = !(outbound_.offering() || inbound_.offering()) ||
                        std::holds_alternative<Exposed>(input) ||
                        std::holds_alternative<ExposeFailed>(input);
  if (!ESDP_CHECK(answered)) Fail(Outcome::kInternal, "Expose: not answered first", actions);
  bool steady = Take(input, actions) && owed_.empty();
  if (!steady) {
    DeliverRare(actions);
  } else if (inbound_.MayDeliver(/*end_of_stream=*/false)) {
    Deliver(actions);
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
    readiness_watch_.Tell(readiness(), inbound_.waiting(), actions);
  if (outbound_.learns()) outbound_.LearnFromEnds(actions, now, counters_);
}

}  // namespace esdp::sdp
