#include <optional>
#include <variant>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"
#include "impl/sdp/unexpected_messages.h"

// What the peer says: the rows of section 17, each handed to the part that knows.

namespace esdp::sdp {

inline const char* Connection::CheckArrival(const MessageArrived& arrived) const {
  const wire::Body& body = arrived.message.body;
  if (arrived.payload_length > 0 && !std::holds_alternative<wire::Data>(body) &&
      !std::holds_alternative<wire::SrcAvail>(body) &&
      !std::holds_alternative<wire::SinkAvail>(body)) {
    return "Len: this message carries no user bytes";
  }
  // [R16.3] Only the message that completes an advert may invalidate, and only if we said so.
  if (arrived.invalidated_key &&
      (!config_.remote_invalidate || (!std::holds_alternative<wire::RdmaRdCompl>(body) &&
                                      !std::holds_alternative<wire::RdmaWrCompl>(body)))) {
    return "RKey: invalidated by a message that may not";
  }
  return suspend_.peer_is_silent() ? CheckSilence(arrived) : nullptr;
}

// [R17.3] User bytes that may not come, in any message.
bool Connection::RefusesPayload(Actions& actions) {
  if (!teardown_.peer_shut()) return false;
  Fail(Outcome::kPeerProtocol, "data behind DisConn", actions);
  return true;
}

bool Connection::OnData(const MessageArrived& arrived, Actions& actions) {
  if (!calm_ && RefusesPayload(actions)) return false;
  if (const char* violation = reader_.OnData(arrived.payload_length); violation != nullptr) {
    Fail(Outcome::kPeerProtocol, violation, actions);
    return false;
  }
  if (!acknowledge_at_) acknowledge_at_ = AddSaturating(now_, config_.acknowledge_delay);
  const bool urgent = (arrived.message.base.flags & wire::kFlagOobPresent) != 0;
  if (urgent) ++counters_.urgent_received;
  if (sink_.outstanding() == 0) {
    sink_.OnUnadvertisedPayload();
  } else if (TakenBySink(arrived, actions)) {
    return false;
  }
  if (!urgent && receive_.MayCopyImmediate(arrived.payload_length)) {
    receive_.CopyImmediate(arrived.buffer, arrived.payload_offset, arrived.payload_length,
                           !reader_.active(), actions, counters_);
    return false;
  }
  receive_.OnPayload(arrived.buffer, arrived.payload_offset, arrived.payload_length);
  if (urgent) receive_.OnUrgentByte();
  return true;
}

// [R17.1]
inline void Connection::Receive(const MessageArrived& arrived, Actions& actions) {
  const wire::Message& message = arrived.message;
  if (credits_.posted() == 0) {
    Fail(Outcome::kInternal, "a message arrived without a posted receive", actions);
    return;
  }
  credits_.OnReceiveTaken();  // [R4.2.4]
  resize_in_.OnReceiveTaken();
  ++counters_.messages_received;
  const bool bare = std::holds_alternative<wire::Data>(message.body) && arrived.payload_length == 0;
  const char* violation = credits_.OnHeader(message.base, bare);
  if (violation == nullptr) violation = CheckArrival(arrived);
  if (violation == nullptr && message.base.flags != 0) {
    calm_ = false;
    const bool carries = std::holds_alternative<wire::Data>(message.body) && !bare;
    violation = urgent_in_.OnMessage(message.base.flags, carries, actions);
  }
  if (violation != nullptr) {
    Fail(Outcome::kPeerProtocol, violation, actions);
    return;
  }
  waits_for_first_ = false;
  send_.OnAcknowledged(credits_.acknowledged_by_peer());
  modes_.OnAcknowledged(credits_.acknowledged_by_peer());
  writer_.OnAcknowledged(credits_.acknowledged_by_peer());

  if (buffers_.window().in_turn() && !bare) {
    const bool is_data = std::holds_alternative<wire::Data>(message.body);
    std::optional<uint32_t> payload;
    if (is_data) payload = arrived.payload_length;
    if (buffers_.EndsTurn(message.base, payload, resize_in_.size(), now_)) calm_ = false;
  }
  bool keeps_buffer = false;
  if (std::holds_alternative<wire::Data>(message.body)) {
    keeps_buffer = !bare && OnData(arrived, actions);  // [R4.4.5, R6.4]
  } else if (const auto* advert = std::get_if<wire::SrcAvail>(&message.body)) {
    keeps_buffer = OnSrcAvail(*advert, arrived, actions);
  } else if (std::holds_alternative<wire::RdmaRdCompl>(message.body)) {
    OnRdmaRdCompl(arrived, actions);
  } else {
    calm_ = false;
    keeps_buffer = ReceiveRare(arrived, actions);
  }
  if (!keeps_buffer) {
    if (IsOpen(phase_)) PostAgain(arrived.buffer, actions);
  } else if (buffers_.LacksMoreThanAGroup(credits_)) {
    buffers_.PostWaiting(resize_in_.size(), credits_, actions);  // this one is no more of the group
  }
}

void Connection::On(const MessageArrived& arrived, Actions& actions) {
  if (calm_ || IsOpen(phase_)) {
    Receive(arrived, actions);
  } else {
    ReceiveWhileNotOpen(arrived, actions);
  }
}

void Connection::ReceiveWhileNotOpen(const MessageArrived& arrived, Actions& actions) {
  if (phase_ == Phase::kHelloSent || phase_ == Phase::kHelloAckSent || phase_ == Phase::kResuming) {
    early_.PushBack(arrived);  // [R2.7.4]
  } else if (phase_ == Phase::kSuspended) {
    OnMessageWhileSuspended(arrived, actions);
  }
}

bool Connection::ReceiveRare(const MessageArrived& arrived, Actions& actions) {
  const wire::Message& message = arrived.message;
  if (std::holds_alternative<wire::SendSm>(message.body)) {
    OnSendSm(arrived, actions);
  } else if (const auto* change = std::get_if<wire::ModeChange>(&message.body)) {
    OnModeChange(*change, actions);
  } else if (const auto* sink = std::get_if<wire::SinkAvail>(&message.body)) {
    return OnSinkAvail(*sink, arrived, actions);
  } else if (std::holds_alternative<wire::RdmaWrCompl>(message.body)) {
    OnRdmaWrCompl(arrived, actions);
  } else if (std::holds_alternative<wire::SinkAvailCancel>(message.body)) {
    ++counters_.sink_cancels_received;
    writer_.OnSinkAvailCancel();
  } else if (std::holds_alternative<wire::SinkCancelAck>(message.body)) {
    OnSinkCancelAck(arrived, actions);
  } else if (std::holds_alternative<wire::SrcAvailCancel>(message.body)) {
    OnSrcAvailCancel(message.base.sequence);
  } else if (const auto* request = std::get_if<wire::ChRcvBuf>(&message.body)) {
    OnChRcvBuf(*request, actions);
  } else if (const auto* answer = std::get_if<wire::ChRcvBufAck>(&message.body)) {
    OnChRcvBufAck(*answer, message.base, actions);
  } else if (std::holds_alternative<wire::DisConn>(message.body)) {
    OnDisConn(actions);
  } else if (std::holds_alternative<wire::AbortConn>(message.body)) {
    Fail(Outcome::kPeerReset, "AbortConn: the peer aborted the connection", actions);
  } else {
    OnOther(message.body, actions);
  }
  return false;
}

// [R17.5, R5.10] What the mode of the half allows.
const char* Connection::CheckSrcAvail(const MessageArrived& arrived) const {
  const AdvertAllowance allowance = modes_.permits().source_adverts_accepted;
  if (allowance == AdvertAllowance::kNone) return "SrcAvail: the half is Buffered";
  if (allowance == AdvertAllowance::kMany && arrived.payload_length > 0) {
    return "SrcAvail: user bytes in Pipelined";
  }
  return nullptr;
}

// [R5.14] SrcAvails that we must be able to hold at once.
size_t Connection::HeldMax() const {
  const bool many = modes_.permits().source_adverts_accepted == AdvertAllowance::kMany;
  return many && MayUseModes() ? config_.max_adverts : size_t{1};
}

bool Connection::OnSrcAvail(const wire::SrcAvail& advert, const MessageArrived& arrived,
                            Actions& actions) {
  if (RefusesPayload(actions)) return false;
  sink_adverts_enabled_ = true;
  const char* violation = CheckSrcAvail(arrived);
  // [R8.3.4, R8.3.6] It has crossed a SinkAvail of ours, which wins.
  if (violation == nullptr && sink_.outstanding() > 0) return false;
  if (violation == nullptr) {
    const AdvertReader::Inline bytes{arrived.buffer, arrived.payload_offset,
                                     arrived.payload_length};
    violation = reader_.OnSrcAvail(advert, bytes, HeldMax());
  }
  if (violation != nullptr) {
    Fail(Outcome::kPeerProtocol, violation, actions);
    return false;
  }
  ++counters_.source_adverts_received;
  if (arrived.payload_length == 0) return false;
  (void)sink_.OnPayload(arrived.payload_length, actions);  // [R8.2.7]
  if (!acknowledge_at_) acknowledge_at_ = AddSaturating(now_, config_.acknowledge_delay);
  if (!AdvertReader::KeepsInline(arrived.payload_length)) {
    receive_.OnPayload(arrived.buffer, arrived.payload_offset, arrived.payload_length);
  }
  return true;
}

// Inline bytes that were kept for the advert become ordinary unread ones.
void Connection::UseInlineBytes() {
  const AdvertReader::Inline bytes = reader_.UseInline();
  receive_.OnPayload(bytes.buffer, bytes.offset, bytes.length);
}

void Connection::OnSrcAvailCancel(uint32_t sequence) {
  if (reader_.fresh()) UseInlineBytes();
  ++counters_.source_cancels_received;
  if (!reader_.OnSrcAvailCancel()) return;
  if (reader_.HoldsAcknowledgement()) credits_.HoldAcknowledgement(sequence - 1);
}

void Connection::OnDisConn(Actions& actions) {
  if (reader_.active()) {  // an advert, or a remainder that it still owes
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
  urgent_in_.OnEndOfStream(actions);
  DropSinkAdverts(actions);
}

void Connection::OnOther(const wire::Body& body, Actions& actions) {
  if (const auto* suspend = std::get_if<wire::SuspComm>(&body))
    return OnSuspComm(*suspend, actions);
  if (std::holds_alternative<wire::SuspCommAck>(body)) return OnSuspCommAck();
  const OtherAnswer answer = AnswerOther(body);
  if (answer.failure != Outcome::kDone) Fail(answer.failure, answer.reason, actions);
}

}  // namespace esdp::sdp
