#include <algorithm>
#include <variant>

#include "impl/sdp/connection.h"

// Messages of the peer that are rare: those of section 17 that do not come with every transfer.

namespace esdp::sdp {

void Connection::ReceiveWhileNotOpen(const MessageArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kHelloSent || phase_ == Phase::kHelloAckSent || phase_ == Phase::kResuming) {
    handshake_.Keep(arrived);  // [R2.7.4]
  } else if (phase_ == Phase::kSuspended) {
    // The queue pair is being ended: news of credits may still have been on their way.
    const char* violation = suspend_.CheckSilence(arrived);
    if (violation != nullptr) Fail(Outcome::kPeerProtocol, violation, actions);
  }
}

// True: it keeps the receive buffer.
bool Connection::ReceiveRare(const MessageArrived& arrived, Actions& actions) {
  const wire::BaseHeader& header = arrived.message.base;
  const wire::Body& body = arrived.message.body;
  const char* violation = nullptr;
  if (std::holds_alternative<wire::SendSm>(body)) {
    if (outbound_.OnSendSm(header.acknowledged, actions, counters_)) modes_.OnAdvertRefused();
  } else if (const auto* change = std::get_if<wire::ModeChange>(&body)) {
    OnModeChange(*change, actions);
  } else if (const auto* sink = std::get_if<wire::SinkAvail>(&body)) {
    return OnSinkAvail(*sink, arrived, actions);
  } else if (std::holds_alternative<wire::RdmaWrCompl>(body)) {
    const auto written = inbound_.OnRdmaWrCompl(arrived, outgoing_, actions, counters_);
    violation = written.violation;
    if (written.taken) RefusesPayload(actions);
  } else if (std::holds_alternative<wire::SinkAvailCancel>(body)) {
    ++counters_.sink_cancels_received;
    outbound_.OnSinkAvailCancel();
  } else if (std::holds_alternative<wire::SinkCancelAck>(body)) {
    inbound_.OnSinkCancelAck(header.acknowledged, actions);
  } else if (std::holds_alternative<wire::SrcAvailCancel>(body)) {
    inbound_.OnSrcAvailCancel(header.sequence, outgoing_.credits(), counters_);
  } else if (const auto* request = std::get_if<wire::ChRcvBuf>(&body)) {
    OnChRcvBuf(*request, actions);
  } else if (const auto* answer = std::get_if<wire::ChRcvBufAck>(&body)) {
    violation = outbound_.OnChRcvBufAck(answer->actual_size, header);
  } else if (std::holds_alternative<wire::DisConn>(body)) {
    OnDisConn(actions);
  } else if (std::holds_alternative<wire::AbortConn>(body)) {
    Fail(Outcome::kPeerReset, "AbortConn: the peer aborted the connection", actions);
  } else if (const auto* suspend = std::get_if<wire::SuspComm>(&body)) {
    OnSuspComm(*suspend, actions);
  } else if (std::holds_alternative<wire::SuspCommAck>(body)) {
    if (suspend_.OnSuspCommAck()) Move(PhaseCue::kSuspCommAckArrived);
  } else if (std::holds_alternative<wire::Hello>(body)) {
    violation = "Hello: the connection is established";  // [R17.2]
  } else if (std::holds_alternative<wire::HelloAck>(body)) {
    violation = "HelloAck: the connection is established";
  }
  if (violation != nullptr) Fail(Outcome::kPeerProtocol, violation, actions);
  return false;
}

// --- adverts, modes and sizes ---

AdvertWriter::Legality Connection::LegalityOfSinkAvail() const {
  using Legality = AdvertWriter::Legality;
  if (!modes_.usable()) return Legality::kIllegal;
  if (teardown_.disconn_sent()) return Legality::kIgnored;  // [8.5] it may have crossed
  if (modes_.permits().sink_adverts_accepted == AdvertAllowance::kMany) return Legality::kUsable;
  return modes_.frozen() ? Legality::kIgnored : Legality::kIllegal;
}

bool Connection::OnSinkAvail(const wire::SinkAvail& advert, const MessageArrived& arrived,
                             Actions& actions) {
  const size_t held =
      std::min<size_t>(inbound_.source_adverts_held(), handshake_.config().max_adverts);
  const char* violation =
      outbound_.OnSinkAvail(advert, LegalityOfSinkAvail(), modes_.send() == Mode::kPipelined,
                            handshake_.config().max_adverts - held, actions, counters_);
  InboundHalf::Arrival arrival{violation, false};
  if (violation == nullptr && arrived.payload_length > 0) {  // [R8.2.5]
    ++counters_.transactions_received;
    if (RefusesPayload(actions)) return false;
    arrival = inbound_.OnData(arrived, outgoing_, actions, counters_);
  }
  if (arrival.violation != nullptr) Fail(Outcome::kPeerProtocol, arrival.violation, actions);
  return arrival.keeps_buffer;
}

void Connection::OnModeChange(const wire::ModeChange& change, Actions& actions) {
  ++counters_.mode_changes_received;
  const auto answer = modes_.OnModeChange(change, inbound_.source_adverts_held());
  if (answer.violation != nullptr) return Fail(Outcome::kPeerProtocol, answer.violation, actions);
  if (!answer.receive_lowered) return;
  inbound_.DropSinkAdverts(actions);  // [R5.22, R8.5.1]
  outgoing_.OweAcknowledgement();     // its master waits to hear that we know
}

void Connection::OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions) {
  if (outbound_.resize_outstanding()) {
    if (!handshake_.config().connecting)
      return;  // [R11.8] both at once: the accepting side disregards
    outbound_.OnResizeDisregarded();
  }
  const char* violation = inbound_.buffers().OnChRcvBuf(request, actions);
  if (violation != nullptr) Fail(Outcome::kPeerProtocol, violation, actions);
}

// --- the end of the peer's stream ---

void Connection::OnDisConn(Actions& actions) {
  if (inbound_.reads()) {  // an advert, or a remainder that it still owes
    Fail(Outcome::kPeerProtocol, "DisConn: an advert is not processed", actions);  // [R17.8]
    return;
  }
  const bool suspending = phase_ == Phase::kSuspending && !teardown_.peer_shut();
  if (suspending && teardown_.disconn_sent()) {
    Move(PhaseCue::kBothShut);  // there is nothing left to move
  } else if (!suspending && !Move(PhaseCue::kDisConnArrived)) {
    Fail(Outcome::kPeerProtocol, "DisConn: a second one", actions);
    return;
  }
  teardown_.OnPeerDisConn();  // [R13.2.2]
  inbound_.urgent().OnEndOfStream(actions);
  inbound_.DropSinkAdverts(actions);
}

}  // namespace esdp::sdp
