#include "impl/sdp/halves.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

// --- queue pairs ---

void Halves::Start(const Config& config, const PeerParameters& peer,
                   const Established& established) {
  const bool deployed = peer.deployed() || config.as_deployed;
  // [R19.1] No key of a peer's is invalidated towards a deployed one, nor as one.
  const bool invalidates = peer.accepts_invalidate && !deployed;
  adverts_held_max_ = config.max_adverts;
  peer_adverts_max_ = peer.max_adverts;
  remote_invalidate_ = config.remote_invalidate;
  connecting_ = config.connecting;
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
  limits.peer_buffers = {peer.buffers, peer.receive_buffer_bytes};
  limits.peer_buffer_wish = deployed ? 0 : config.peer_receive_buffer_bytes;
  limits.peer_buffers_by_need = config.peer_receive_buffers_by_need;
  outbound_.Start(limits);
  modes_.Start(!deployed && config.max_adverts > 1, config.mode_send, config.mode_receive);
}

void Halves::OnQueuePairLeft(Actions& actions) {
  outbound_.OnQueuePairLeft(actions);
  inbound_.OnQueuePairLeft(actions);
  modes_.OnQueuePairLeft();
  outgoing_.OnQueuePairLeft();
}

uint16_t Halves::PostAllReceives(Actions& actions) {
  inbound_.buffers().PostAll(outgoing_.credits(), actions);
  return outgoing_.credits().posted();
}

uint16_t Halves::PostFreeReceives(Actions& actions) {
  inbound_.buffers().PostFree(outgoing_.credits(), actions);
  return outgoing_.credits().posted();
}

// --- cancels ---

void Halves::Cancel(const AskCancel& ask, Actions& actions) {
  const Time end_by = AddSaturating(outgoing_.now(), cancel_grace_);
  if (inbound_.urgent().Cancel(ask.operation, ask.outcome, actions)) return;
  if (outbound_.Cancel(ask, end_by, outgoing_, actions)) {
    cancel_due_ = std::min(cancel_due_, outbound_.NextEndBy());
  } else {
    inbound_.Cancel(ask, end_by, actions);
    cancel_due_ = std::min(cancel_due_, inbound_.NextEndBy());
  }
}

const char* Halves::WhyNotEnded(const AskCancel& cancelled) const {
  const bool late = cancelled.outcome == Outcome::kDeadlineExceeded;
  if (outbound_.Has(cancelled.operation)) {
    return late ? "a send had begun when its deadline passed"
                : "a send that had begun was cancelled";
  }
  if (inbound_.Has(cancelled.operation)) {
    return late ? "a receive had begun when its deadline passed"
                : "a receive that had begun was cancelled";
  }
  return nullptr;
}

// --- messages of the peer ---

Halves::Arrival Halves::OnRare(const MessageArrived& arrived, const Terms& terms,
                               Actions& actions) {
  const wire::BaseHeader& header = arrived.message.base;
  const wire::Body& body = arrived.message.body;
  if (std::holds_alternative<wire::SendSm>(body)) {
    if (outbound_.OnSendSm(header.acknowledged, actions, counters_)) modes_.OnAdvertRefused();
  } else if (const auto* change = std::get_if<wire::ModeChange>(&body)) {
    return {OnModeChange(*change, actions), false};
  } else if (std::holds_alternative<wire::SinkAvail>(body)) {
    return OnSinkAvail(arrived, terms, actions);
  } else if (std::holds_alternative<wire::RdmaWrCompl>(body)) {
    const auto written = inbound_.OnRdmaWrCompl(arrived, outgoing_, actions, counters_);
    if (written.taken && terms.peer_shut) return {"data behind DisConn", false};  // [R17.3]
    return {written.violation, false};
  } else if (std::holds_alternative<wire::SinkAvailCancel>(body)) {
    ++counters_.sink_cancels_received;
    outbound_.OnSinkAvailCancel();
  } else if (std::holds_alternative<wire::SinkCancelAck>(body)) {
    inbound_.OnSinkCancelAck(header.acknowledged, actions);
  } else if (std::holds_alternative<wire::SrcAvailCancel>(body)) {
    inbound_.OnSrcAvailCancel(header.sequence, outgoing_.credits(), counters_);
  } else if (const auto* request = std::get_if<wire::ChRcvBuf>(&body)) {
    return {OnChRcvBuf(*request, actions), false};
  } else if (const auto* answer = std::get_if<wire::ChRcvBufAck>(&body)) {
    return {outbound_.OnChRcvBufAck(answer->actual_size, header), false};
  }
  return {};
}

AdvertWriter::Legality Halves::LegalityOfSinkAvail(bool disconn_sent) const {
  using Legality = AdvertWriter::Legality;
  if (!modes_.usable()) return Legality::kIllegal;
  if (disconn_sent) return Legality::kIgnored;  // [8.5] it may have crossed
  if (modes_.permits().sink_adverts_accepted == AdvertAllowance::kMany) return Legality::kUsable;
  return modes_.frozen() ? Legality::kIgnored : Legality::kIllegal;
}

Halves::Arrival Halves::OnSinkAvail(const MessageArrived& arrived, const Terms& terms,
                                    Actions& actions) {
  const auto& advert = std::get<wire::SinkAvail>(arrived.message.body);
  const size_t held = std::min<size_t>(inbound_.source_adverts_held(), adverts_held_max_);
  const char* violation = outbound_.OnSinkAvail(advert, LegalityOfSinkAvail(terms.disconn_sent),
                                                modes_.send() == Mode::kPipelined,
                                                adverts_held_max_ - held, actions, counters_);
  if (violation != nullptr || arrived.payload_length == 0) return {violation, false};
  ++counters_.transactions_received;  // [R8.2.5]
  if (terms.peer_shut) return {"data behind DisConn", false};
  return inbound_.OnData(arrived, outgoing_, actions, counters_);
}

const char* Halves::OnModeChange(const wire::ModeChange& change, Actions& actions) {
  ++counters_.mode_changes_received;
  const auto answer = modes_.OnModeChange(change, inbound_.source_adverts_held());
  if (answer.violation != nullptr || !answer.receive_lowered) return answer.violation;
  inbound_.DropSinkAdverts(actions);  // [R5.22, R8.5.1]
  outgoing_.OweAcknowledgement();     // its master waits to hear that we know
  return nullptr;
}

const char* Halves::OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions) {
  if (outbound_.resize().outstanding()) {
    if (!connecting_) return nullptr;  // [R11.8] both at once: the accepting side disregards
    outbound_.OnResizeDisregarded();
  }
  return inbound_.buffers().OnChRcvBuf(request, actions);
}

void Halves::OnDisConn(Actions& actions) {
  inbound_.urgent().OnEndOfStream(actions);
  inbound_.DropSinkAdverts(actions);
}

// --- the fabric ---

const char* Halves::OnReadFinished() {
  if (!ESDP_CHECK(inbound_.read_in_flight())) return "ReadFinished: no Read is posted";
  inbound_.OnReadFinished(outgoing_, counters_);
  return nullptr;
}

const char* Halves::OnWriteFinished() {
  if (!ESDP_CHECK(outbound_.write_in_flight())) return "WriteFinished: no Write is posted";
  outbound_.OnWriteFinished(outgoing_);
  return nullptr;
}

const char* Halves::OnExposed(const Exposed& exposed, bool over, Actions& actions) {
  const bool of_sink = SinkAdverts::Owns(exposed.advert);
  if (over) {  // too late: nobody will be told of it
    of_sink ? inbound_.OnExposeFailed(exposed.advert) : outbound_.OnExposeFailed(exposed.advert);
    return nullptr;
  }
  const bool asked = of_sink ? inbound_.OnExposed(exposed)
                             : outbound_.OnExposed(exposed, outgoing_, actions, counters_);
  if (!ESDP_CHECK(asked)) return "Exposed: not asked";
  if (!of_sink) return nullptr;
  const bool transaction = outbound_.MayRideAlong(outgoing_);
  const auto kind = transaction ? Outgoing::Kind::kPayload : Outgoing::Kind::kControl;
  Send& send = inbound_.PostSinkAvail(kind, outgoing_, actions, counters_);
  if (!transaction) return nullptr;
  outbound_.RideAlong(send, counters_);
  ++counters_.transactions_sent;
  return nullptr;
}

const char* Halves::OnExposeFailed(const ExposeFailed& failed, bool over) {
  const bool of_sink = SinkAdverts::Owns(failed.advert);
  const bool asked =
      of_sink ? inbound_.OnExposeFailed(failed.advert) : outbound_.OnExposeFailed(failed.advert);
  if (over) return nullptr;
  if (!ESDP_CHECK(asked)) return "ExposeFailed: not asked";
  of_sink ? inbound_.GoWithoutExposure() : outbound_.GoWithoutExposure();
  ++counters_.expose_failures;
  return nullptr;
}

void Halves::OnPrepared(const ReceivesPrepared& prepared, bool may_post, Actions& actions) {
  inbound_.buffers().OnPrepared(prepared.done, may_post, outgoing_.now(), outgoing_.credits(),
                                actions);
}

// --- what reaches receives ---

void Halves::Deliver(const Terms& terms, Owed& owed, Actions& actions) {
  const InboundHalf::DeliveryTerms granted{terms.may_read, terms.may_read_last, terms.may_post,
                                           terms.peer_shut, outbound_.advertised()};
  if (inbound_.Deliver(granted, outgoing_, actions, counters_)) {
    outbound_.AskSourceAdvertsBack();
    NoteDuties(owed);
  }
}

// --- what is owed beside the streams ---

void Halves::AskWhatIsOwed(Owed& owed) const {
  owed.Set(Duty::kFirstMessage, outgoing_.speaks_first());
  owed.Set(Duty::kSilence, outgoing_.waits_for_first());
  owed.Set(Duty::kResize, inbound_.buffers().resizing() || !outbound_.resize().settled());
  owed.Set(Duty::kSourceCancel, outbound_.cancels_source_adverts());
  owed.Set(Duty::kSinkAnswers, outbound_.writes() || inbound_.owes_sink_cancel());
  owed.Set(Duty::kModeChange, !modes_.Rests(0));
  owed.Set(Duty::kSinkAdvert, modes_.receive() == Mode::kPipelined || !inbound_.sink_idle() ||
                                  outgoing_.owes_answer_to_write());
  owed.Set(Duty::kUrgentNotice, outbound_.has_urgent());
  owed.Set(Duty::kCredits, outgoing_.acknowledgement_due());
  owed.Set(Duty::kWindow, inbound_.buffers().window().due());
  owed.Set(Duty::kTimers, !TimersStand());
}

// [R10.1] An urgent notice rides on what leaves next.
void Halves::NoteDuties(Owed& owed) {
  AskWhatIsOwed(owed);
  outgoing_.SetUrgentAhead(outbound_.UrgentAhead());
}

bool Halves::SendDuties(Duty first, Duty last, bool may_advertise, const Terms& terms, Owed& owed,
                        Actions& actions) {
  Owed rest = owed.From(first);
  while (!rest.empty() && rest.First() <= last) {
    const Duty duty = rest.First();
    const size_t before = actions.size();
    const bool more = SendDuty(duty, may_advertise, terms, actions);
    if (actions.size() != before) NoteDuties(owed);
    if (!more) return false;
    rest = owed.Behind(duty);
  }
  return true;
}

bool Halves::SendDuty(Duty duty, bool may_advertise, const Terms& terms, Actions& actions) {
  switch (duty) {
    case Duty::kResize:
      inbound_.SendResizeAnswer(outgoing_, actions, counters_);
      outbound_.SendResizeRequest(!inbound_.buffers().resizing() && !terms.shut, outgoing_, actions,
                                  counters_);
      return true;
    case Duty::kSourceCancel:
      outbound_.SendSourceCancel(outgoing_, actions, counters_);
      return true;
    case Duty::kSinkAnswers:
      outbound_.SendSinkCancelAck(may_advertise, !inbound_.holds_acknowledgement(), outgoing_,
                                  actions, counters_);
      inbound_.SendSinkCancel(outgoing_, actions, counters_);
      return true;
    case Duty::kSinkAdvert:
      // [R13.1.2] No advert behind our DisConn, and none for a stream that has ended.
      if (modes_.usable() && modes_.permits().sink_adverts == AdvertAllowance::kMany &&
          !terms.disconn_sent && !terms.peer_shut && !terms.closing) {
        // Half of what the peer can hold is left to our own SrcAvails.
        const size_t share = std::max<size_t>(1, peer_adverts_max_ / 2);
        inbound_.OfferSink(AdvertRoom(), share, outgoing_, actions);
      }
      if (inbound_.hides_receives()) outgoing_.AnswerWriteAtOnce();
      return !inbound_.offering();  // its advert has the next MSeq
    case Duty::kUrgentNotice:
      // [R10.8] Payload before the urgent byte waits for credits, slots or an advert.
      if (outgoing_.UrgentNoticeDue() && outgoing_.MaySendControl()) {
        outgoing_.PostBare(actions, counters_);
      }
      return true;
    default:
      return true;
  }
}

void Halves::SendFirst(Owed& owed, Actions& actions) {
  if (!outgoing_.speaks_first()) return;
  outgoing_.SpeakFirst(actions, counters_);
  if (!outgoing_.speaks_first()) NoteDuties(owed);
}

void Halves::SendModeChanges(bool may_advertise, const Terms& terms, Owed& owed, Actions& actions) {
  if (modes_.Rests(outbound_.waiting())) return;
  DeliveryModes::Facts facts;
  facts.may_send = !terms.disconn_sent && !outbound_.cancels_source_adverts();
  facts.may_receive = !terms.peer_shut;
  facts.large_sends = outbound_.LargeSends(may_advertise);
  facts.large_receives = inbound_.LargeReceives();
  facts.source_adverts_out = outbound_.advertised();
  facts.writing = outbound_.in_process();
  const size_t before = actions.size();
  if (modes_.SendDue(facts, outgoing_, actions, counters_)) outbound_.LeavePipelined();
  if (actions.size() != before) NoteDuties(owed);
}

bool Halves::ComeToRest(bool may_advertise, Actions& actions) {
  inbound_.UseInlineBytes();
  SendReadAnswers(actions);
  // [R12.1] Partial fills are completed as for a cancel.
  if (outbound_.in_process()) outbound_.OnSinkAvailCancel();
  outbound_.SendSinkCancelAck(may_advertise, !inbound_.holds_acknowledgement(), outgoing_, actions,
                              counters_);
  inbound_.SendSinkCancel(outgoing_, actions, counters_);
  // [R12.1], [R12.3] Reads that run are finished and reported. An advert with nothing running is
  // void afterwards: its inline bytes count, the rest is the source's again.
  const bool in_process = outbound_.in_process() || outbound_.write_in_flight() ||
                          inbound_.read_in_flight() || inbound_.owes_read_answer();
  return !in_process && outgoing_.MaySendControl();
}

void Halves::StayAtRest(Actions& actions) {
  inbound_.UseInlineBytes();
  if (!outgoing_.credits().MustUpdate() || !outgoing_.HasSlot(0)) return;
  outgoing_.PostBare(actions, counters_);
}

void Halves::AskForWindow(Actions& actions) {
  if (!offering()) inbound_.buffers().AskForWindow(actions);
}

// --- the end, and timers ---

void Halves::End(Outcome cause, bool input_kept, const Terms& terms, Owed& owed, Actions& actions) {
  const bool in_order = cause == Outcome::kDone;
  const Outcome outcome = in_order ? Outcome::kShutDown : cause;
  outgoing_.OnEnd();
  outbound_.DropSinkAdverts();
  inbound_.OnLost();
  if (in_order) outbound_.OnAllDelivered(counters_, actions);
  if (!input_kept) inbound_.DropUnread();
  outbound_.FinishAll(outcome, actions);
  if (input_kept) {
    Deliver(terms, owed, actions);
  } else {
    inbound_.FinishAll(cause, actions);
  }
  inbound_.urgent().FinishAll(outcome, actions);
}

void Halves::FinishReceives(Outcome outcome, Actions& actions) {
  inbound_.DropUnread();
  inbound_.FinishAll(outcome, actions);
}

void Halves::ArmTimers(bool over, Actions& actions) {
  if (over) cancel_due_ = kTimeInfinite;
  ArmTimer(Timer::kCancel, cancel_due_, cancel_armed_, actions);
  if (over) inbound_.buffers().StopWindowTimer(actions);
  outgoing_.ArmTimer(over, actions);
}

// Set lazily: most of what is cancelled has ended long since.
bool Halves::OnCancelTimer() {
  cancel_armed_ = kTimeInfinite;
  cancel_due_ = std::min(outbound_.NextEndBy(), inbound_.NextEndBy());
  if (cancel_due_ > outgoing_.now()) return false;
  cancel_due_ = kTimeInfinite;
  return true;
}

void Halves::OnWindowTimer(bool open, Actions& actions) {
  inbound_.buffers().OnWindowTimer(open && inbound_.idle(), outgoing_.now(), outgoing_.credits(),
                                   actions);
}

void Halves::AddTo(Digest& digest) const {
  outgoing_.AddTo(digest);
  outbound_.AddTo(digest);
  inbound_.AddTo(digest);
  modes_.AddTo(digest);
}

}  // namespace esdp::sdp
