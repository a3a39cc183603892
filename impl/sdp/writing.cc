#include <algorithm>
#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// Write ZCopy [8, 9]: receives that are shown to the peer, and writing to those of the peer's.

namespace esdp::sdp {

// --- our SinkAvails ---

bool Connection::MayOfferSink() const {
  if (modes_.permits().sink_adverts != AdvertAllowance::kMany) return false;
  if (!sink_adverts_enabled_ || !config_.shows_receives || !config_.can_expose || !MayUseModes())
    return false;
  // [R5.12]
  if (!sink_.may_offer()) return false;
  // [R13.1.2] No advert behind our DisConn, and none for a stream that has ended.
  if (teardown_.disconn_sent() || teardown_.peer_shut() || teardown_.closing()) return false;
  // [R8.1.1, R8.3.3] Not over a SrcAvail; nor where bytes wait that come first.
  if (reader_.active() || receive_.has_unread()) return false;
  // Half of what the peer can hold is left to our own SrcAvails.
  const size_t share = std::max<size_t>(1, peer_.max_adverts / 2);
  if (sink_.outstanding() >= share || AdvertRoom() == 0) return false;
  return HasSlot(kWorkSlotsForControl) && MaySendControl();
}

void Connection::OfferSink(Actions& actions) {
  const auto place = receive_.NextToAdvertise();
  // [R11.9] And larger than what comes once the answer is out: it may be filled later than that.
  if (!place || !AdvertisesRoom(place->room, resize_in_.message_bytes_max())) return;
  sink_.Offer(place->room.range, place->operation_number, actions);
}

void Connection::OnSinkExposed(const Exposed& exposed, Actions& actions) {
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) {
    sink_.OnExposeFailed(exposed.advert);  // too late: nobody will be told of it
    return;
  }
  if (!ESDP_CHECK(sink_.OnExposed(exposed))) {
    Fail(Outcome::kInternal, "Exposed: not asked", actions);
    return;
  }
  // Nothing was sent since the offer, so credit and slot are still there.
  const bool transaction = MayRideAlong();
  Send& send = NewSend(sink_.Message(), actions);
  if (transaction) send_.TakeCopied(send);
  Stamp(send, transaction ? SendKind::kPayload : SendKind::kControl, false);
  if (transaction) {
    OnPayloadPosted(send.message.base.sequence);
    ++counters_.transactions_sent;
  }
  sink_.OnPosted();
  receive_.OnAdvertised();
  ++counters_.sink_adverts_sent;
}

// [R9.1, R9.2, R9.3] Small bytes of ours that wait: they leave with the advert of the reply's
// place.
bool Connection::MayRideAlong() const {
  if (source_.outstanding() || writer_.in_process() || writer_.ack_owed()) return false;
  const uint32_t room = resize_out_.size() - uint32_t{wire::kSinkAvailBytes};
  return credits_.MaySendPayload() && send_.CopiedFit(room);
}

// [R8.2.6] Payload that has crossed a SinkAvail of ours. True: it is dealt with.
bool Connection::TakenBySink(const MessageArrived& arrived, Actions& actions) {
  const SinkAdverts::Taken taken = sink_.OnPayload(arrived.payload_length, actions);
  if (taken.violation != nullptr) {
    Fail(Outcome::kPeerProtocol, taken.violation, actions);
    return true;
  }
  if (!taken.is_taken) return false;
  receive_.CopyInstead(arrived.buffer, arrived.payload_offset, taken.bytes, actions, counters_);
  if ((arrived.message.base.flags & wire::kFlagOobPresent) != 0) {
    receive_.EndAtUrgent(taken.operation_number);
  }
  // What is shown to a peer that sends small messages costs more than it saves. A SrcAvail says
  // that it has more to send.
  sink_adverts_enabled_ = false;
  return true;
}

void Connection::OnRdmaWrCompl(const MessageArrived& arrived, Actions& actions) {
  const auto& completion = std::get<wire::RdmaWrCompl>(arrived.message.body);
  const SinkAdverts::Taken taken =
      sink_.OnRdmaWrCompl(completion.length, arrived.invalidated_key, arrived.written, actions);
  if (taken.violation != nullptr) {
    Fail(Outcome::kPeerProtocol, taken.violation, actions);
    return;
  }
  if (!taken.is_taken) return;
  receive_.OnWritten(taken.bytes, counters_);
  if (RefusesPayload(actions)) return;
  sink_adverts_enabled_ = true;
  if (!acknowledge_at_) acknowledge_at_ = AddSaturating(now_, config_.acknowledge_delay);
}

void Connection::OnSinkCancelAck(const MessageArrived& arrived, Actions& actions) {
  if (!sink_.OnSinkCancelAck(arrived.message.base.acknowledged, actions)) return;
  receive_.OnAdvertsDropped(actions);
}

// [R8.5.1] They have vanished.
void Connection::DropSinkAdverts(Actions& actions) {
  if (sink_.outstanding() == 0) return;
  sink_.DropAll(actions);
  receive_.OnAdvertsDropped(actions);
}

// --- the peer's SinkAvails ---

AdvertWriter::Legality Connection::LegalityOfSinkAvail() const {
  using Legality = AdvertWriter::Legality;
  if (!MayUseModes()) return Legality::kIllegal;
  if (teardown_.disconn_sent()) return Legality::kIgnored;  // [8.5] it may have crossed
  if (modes_.permits().sink_adverts_accepted == AdvertAllowance::kMany) return Legality::kUsable;
  return modes_.frozen() ? Legality::kIgnored : Legality::kIllegal;
}

bool Connection::OnSinkAvail(const wire::SinkAvail& advert, const MessageArrived& arrived,
                             Actions& actions) {
  const uint32_t message_bytes =
      std::min(resize_out_.size() - uint32_t{wire::kBaseHeaderBytes}, kDataBytesMax);
  const size_t held = std::min<size_t>(reader_.held(), config_.max_adverts);
  const AdvertWriter::Arrival arrival =
      writer_.OnSinkAvail(advert, LegalityOfSinkAvail(), message_bytes, config_.max_adverts - held);
  if (arrival.violation != nullptr) {
    Fail(Outcome::kPeerProtocol, arrival.violation, actions);
    return false;
  }
  ++counters_.sink_adverts_received;
  if (arrival.stale) ++counters_.stale_adverts;
  // [R8.3.1, R8.3.5] It wins over what we have advertised. [R5.19] So does one that is ignored: the
  // peer, with it outstanding, has passed over what we advertised before we left Pipelined.
  const bool before_change = modes_.send() == Mode::kPipelined || source_.inline_bytes() == 0;
  if (arrival.fresh && source_.outstanding() && before_change) OverrideSourceAdverts(actions);
  if (arrived.payload_length == 0) return false;  // [R8.2.5]
  ++counters_.transactions_received;
  return OnData(arrived, actions);
}

// Completes what the peer wants back, then answers; and asks for what was ours.
void Connection::SendSinkAnswers(Actions& actions) {
  if (writer_.cancelled()) SendWrites(actions);
  // [R7.4.5, R8.4.7] With an MSeqAck that is held back it would be none to the peer.
  if (writer_.ack_owed() && !reader_.HoldsAcknowledgement() && MaySendControl()) {
    Stamp(NewSend(wire::SinkCancelAck{}, actions), SendKind::kControl, false);
    writer_.TakeSinkCancelAck();
  }
  if (!sink_.cancel_owed() || !MaySendControl()) return;
  Send& send = NewSend(wire::SinkAvailCancel{}, actions);
  Stamp(send, SendKind::kControl, false);
  sink_.OnCancelPosted(send.message.base.sequence);
  ++counters_.sink_cancels_sent;
}

// [R8.3.1, R8.4.8] What can be written is written. True: no message with payload may leave now.
bool Connection::WritesHavePrecedence(Actions& actions) {
  if (writer_.live() > 0) SendWrites(actions);
  if (writer_.in_process() || writer_.ack_owed()) return true;
  return writer_.room() > 0 && send_.Writable();
}

// [R8.1.3, R8.1.4, R16.2] Writes, and behind those to one advert its RdmaWrCompl: when it is full,
// or when nothing more can be written now.
void Connection::SendWrites(Actions& actions) {
  for (;;) {
    const std::optional<OperationRange> waiting = send_.Writable();
    const uint32_t room = writer_.room();
    if (writer_.in_process() && (room == 0 || !waiting)) {
      if (!MaySendControl()) return;
      const AdvertWriter::Completion completion = writer_.TakeRdmaWrCompl();
      Send& send = NewSend(completion.message, actions);
      if (peer_.accepts_invalidate) send.invalidate_key = completion.finished_key;
      Stamp(send, SendKind::kControl, false);
      send_.OnWritesReported(send.message.base.sequence);
      writer_.OnCompletionPosted(send.message.base.sequence);
      continue;
    }
    if (!waiting || room == 0 || !HasSlot(kWorkSlotsForControl)) return;
    OperationRange part = *waiting;
    part.length = std::min({part.length, room, config_.read_bytes_max});
    actions.emplace_back(writer_.StartWrite(part));
    send_.OnWriteStarted(part.length, counters_);
  }
}

}  // namespace esdp::sdp
