#ifndef ESDP_IMPL_SDP_HALVES_STEP_H_
#define ESDP_IMPL_SDP_HALVES_STEP_H_

#include <variant>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/halves.h"

// What each message costs: to be one function with Connection::Step, where alone this is included.
// What is rare stands in halves.cc.

namespace esdp::sdp {

// --- what comes in ---

inline bool Halves::MaySendImmediate(const AskSend& ask) const {
  return outbound_.MayLeaveImmediate(ask) && !inbound_.reads() &&
         outgoing_.HasSlot(kWorkSlotsForControl) && outgoing_.MaySendPayload();
}

inline const char* Halves::CheckArrival(const MessageArrived& arrived) const {
  const wire::Body& body = arrived.message.body;
  if (!std::holds_alternative<wire::Data>(body) && arrived.payload_length > 0 &&
      !std::holds_alternative<wire::SrcAvail>(body) &&
      !std::holds_alternative<wire::SinkAvail>(body)) {
    return "Len: this message carries no user bytes";
  }
  // [R16.3] Only the message that completes an advert may invalidate, and only if we said so.
  if (arrived.invalidated_key &&
      (!remote_invalidate_ || (!std::holds_alternative<wire::RdmaRdCompl>(body) &&
                               !std::holds_alternative<wire::RdmaWrCompl>(body)))) {
    return "RKey: invalidated by a message that may not";
  }
  return nullptr;
}

inline const char* Halves::OnHeader(const MessageArrived& arrived, const char* unexpected,
                                    Actions& actions) {
  const wire::BaseHeader& header = arrived.message.base;
  Credits& credits = outgoing_.credits();
  credits.OnReceiveTaken();  // [R4.2.4]
  inbound_.buffers().OnReceiveTaken();
  ++counters_.messages_received;
  const bool is_data = std::holds_alternative<wire::Data>(arrived.message.body);
  const bool bare = is_data && arrived.payload_length == 0;
  const char* violation = credits.OnHeader(header, bare);
  if (violation == nullptr) violation = CheckArrival(arrived);
  if (violation == nullptr) violation = unexpected;
  if (violation == nullptr && header.flags != 0) {
    violation = inbound_.urgent().OnMessage(header.flags, is_data && !bare, actions);
  }
  if (violation != nullptr) return violation;
  outgoing_.OnMessageArrived();
  outbound_.OnAcknowledged(credits.acknowledged_by_peer());
  modes_.OnAcknowledged(credits.acknowledged_by_peer());
  return nullptr;
}

inline bool Halves::EndsTurn(const MessageArrived& arrived) {
  return inbound_.buffers().window().in_turn() &&
         inbound_.buffers().EndsTurn(arrived, outgoing_.now());
}

inline Halves::Arrival Halves::OnData(const MessageArrived& arrived, bool ended, Actions& actions) {
  if (ended) [[unlikely]]
    return {"data behind DisConn", false};  // [R17.3]
  return inbound_.OnData(arrived, outgoing_, actions, counters_);
}

inline Halves::Arrival Halves::OnSrcAvail(const MessageArrived& arrived, bool ended,
                                          Actions& actions) {
  if (ended) [[unlikely]]
    return {"data behind DisConn", false};
  // [R17.5, R5.10] What the mode of the half allows.
  const AdvertAllowance allowance = modes_.permits().source_adverts_accepted;
  if (allowance == AdvertAllowance::kNone) return {"SrcAvail: the half is Buffered", false};
  if (allowance == AdvertAllowance::kMany && arrived.payload_length > 0) {
    return {"SrcAvail: user bytes in Pipelined", false};
  }
  return inbound_.OnSrcAvail(std::get<wire::SrcAvail>(arrived.message.body), arrived,
                             modes_.SourceAdvertsHeldMax(adverts_held_max_), outgoing_, actions,
                             counters_);
}

inline const char* Halves::OnRdmaRdCompl(const MessageArrived& arrived, Actions& actions) {
  const auto& completion = std::get<wire::RdmaRdCompl>(arrived.message.body);
  const auto read =
      outbound_.OnRdmaRdCompl(completion.length, arrived.invalidated_key, actions, counters_);
  if (read.violation != nullptr) return read.violation;
  if ((arrived.message.base.flags & wire::kFlagReqPipe) != 0) modes_.OnHint();
  if (read.complete) modes_.OnAdvertRead();
  return nullptr;
}

inline Outgoing::Kind Halves::OnSendFinished() {
  const Outgoing::Kind kind = outgoing_.OnSendFinished();
  if (kind == Outgoing::Kind::kPayload) outbound_.OnPayloadFinished();
  return kind;
}

// --- what leaves ---

inline OutboundHalf::SourceTerms Halves::TermsOfSourceAdverts() const {
  if (!outbound_.wants_source_adverts() || !modes_.wants_source_adverts()) return {};
  return {modes_.permits().source_adverts, AdvertRoom(), inbound_.MayBeCrossed()};
}

inline bool Halves::CopySmall(Actions& actions) {
  if (!outbound_.has_pieces()) return false;
  const bool may_advertise =
      outbound_.wants_source_adverts() && outbound_.MayAdvertise(TermsOfSourceAdverts());
  outbound_.CopySmall(may_advertise, actions, counters_);
  return may_advertise;
}

[[gnu::always_inline]] inline bool Halves::SendDue(bool steady, bool may_advertise,
                                                   const Terms& terms, Owed& owed,
                                                   Actions& actions) {
  const auto send_rare = [&](Duty first, Duty last) {
    return steady || !owed.HasAny(first, last) ||
           SendDuties(first, last, may_advertise, terms, owed, actions);
  };
  if (inbound_.reads()) SendReadAnswers(actions);
  if (!send_rare(Duty::kResize, Duty::kSinkAnswers)) return false;
  if (!steady || (outbound_.has_pieces() && outbound_.waiting() >= 2)) {
    SendModeChanges(may_advertise, terms, owed, actions);
  }
  if (!send_rare(Duty::kSinkAdvert, Duty::kSinkAdvert)) return false;
  if (!outbound_.drained() || (!steady && outbound_.in_process())) {
    outbound_.SendPayload(TermsOfSourceAdverts(), !steady && terms.shut, outgoing_, actions,
                          counters_);
    if (steady && outbound_.resize().Due()) [[unlikely]]
      owed.Set(Duty::kResize, true);         // by the next step
    if (outbound_.offering()) return false;  // its advert has the next MSeq
  }
  return send_rare(Duty::kUrgentNotice, Duty::kUrgentNotice);
}

inline void Halves::SendCredits(bool steady, Actions& actions) {
  if (outgoing_.OwesCredits() || (!steady && outgoing_.acknowledgement_due())) {
    outgoing_.SendCredits(actions, counters_);
  }
}

// --- behind that ---

inline void Halves::NoteAnnouncement(const Actions& actions) {
  if (!inbound_.buffers().window().awaits_announcement()) return;
  inbound_.buffers().NoteAnnouncement(actions, outgoing_.now());
}

inline bool Halves::InvariantsHold() const {
  return outgoing_.InvariantsHold() && outbound_.InvariantsHold() &&
         inbound_.InvariantsHold(outgoing_.credits()) &&
         outbound_.source_adverts() + inbound_.sink_adverts() <= peer_adverts_max_;
}

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_HALVES_STEP_H_
