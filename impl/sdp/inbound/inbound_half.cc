#include "impl/sdp/inbound/inbound_half.h"

#include <algorithm>
#include <variant>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/common/policy.h"

namespace esdp::sdp {

InboundHalf::InboundHalf(const Config& config)
    : buffers_(config),
      shows_receives_(config.shows_receives && config.can_expose),
      read_bytes_max_(config.read_bytes_max),
      read_ahead_bytes_(config.read_ahead_bytes) {}

void InboundHalf::OnQueuePairLeft(Actions& actions) {
  reader_ = AdvertReader{};
  sink_.OnQueuePairLeft();
  receive_.OnAllWithdrawn();
  receive_.OnAdvertsDropped(actions);
  sink_adverts_enabled_ = true;
  adverts_crossed_ = false;
  const size_t surplus = receive_.buffers_held() - receive_.BuffersHeldBelow(buffers_.count());
  buffers_.OnQueuePairLeft([this](ReceiveBuffer buffer) { return receive_.Holds(buffer); },
                           surplus);
}

// --- the application ---

void InboundHalf::Cancel(const AskCancel& ask, Time end_by, Actions& actions) {
  const auto answer = receive_.Cancel(ask.operation, ask.outcome, actions);
  if (answer == ReceiveQueue::CancelAnswer::kAdvertised &&
      ask.mode != CancelMode::kAbortConnection) {
    sink_.AskCancel();
  }
  receive_.Bound(ask.operation, end_by);
}

void InboundHalf::CancelAll(Outcome outcome, Actions& actions) {
  urgent_.FinishAll(outcome, actions);
  receive_.CancelAll(outcome, actions);
  sink_.AskCancel();
}

// --- what arrives ---

InboundHalf::Arrival InboundHalf::OnData(const MessageArrived& arrived, Outgoing& outgoing,
                                         Actions& actions, Counters& counters) {
  Arrival arrival{reader_.OnData(arrived.payload_length), false};
  if (arrival.violation != nullptr) return arrival;
  outgoing.OweAcknowledgement();
  const bool urgent = (arrived.message.base.flags & wire::kFlagOobPresent) != 0;
  if (urgent) ++counters.urgent_received;
  if (sink_.outstanding() == 0) {
    sink_.OnUnadvertisedPayload();
  } else if (TakenBySink(arrived, arrival, actions, counters)) {
    return arrival;
  }
  if (!urgent && receive_.MayCopyImmediate(arrived.payload_length)) {
    receive_.CopyImmediate(arrived.buffer, arrived.payload_offset, arrived.payload_length,
                           !reader_.active(), actions, counters);
    return arrival;
  }
  receive_.OnPayload(arrived.buffer, arrived.payload_offset, arrived.payload_length);
  if (urgent) receive_.OnUrgentByte();
  arrival.keeps_buffer = true;
  return arrival;
}

// [R8.2.6] Payload that has crossed a SinkAvail of ours.
bool InboundHalf::TakenBySink(const MessageArrived& arrived, Arrival& arrival, Actions& actions,
                              Counters& counters) {
  const SinkAdverts::Taken taken = sink_.OnPayload(arrived.payload_length, actions);
  arrival.violation = taken.violation;
  if (taken.violation != nullptr) return true;
  if (!taken.is_taken) return false;
  receive_.CopyInstead(arrived.buffer, arrived.payload_offset, taken.bytes, actions, counters);
  if ((arrived.message.base.flags & wire::kFlagOobPresent) != 0) {
    receive_.EndAtUrgent(taken.operation_number);
  }
  // What is shown to a peer that sends small messages costs more than it saves. A SrcAvail says
  // that it has more to send.
  sink_adverts_enabled_ = false;
  return true;
}

InboundHalf::Arrival InboundHalf::OnSrcAvail(const wire::SrcAvail& advert,
                                             const MessageArrived& arrived, size_t held_max,
                                             Outgoing& outgoing, Actions& actions,
                                             Counters& counters) {
  sink_adverts_enabled_ = true;
  // [R8.3.4, R8.3.6] It has crossed a SinkAvail of ours, which wins.
  if (sink_.outstanding() > 0) return {};
  const AdvertReader::Inline bytes{arrived.buffer, arrived.payload_offset, arrived.payload_length};
  if (const char* violation = reader_.OnSrcAvail(advert, bytes, held_max)) {
    return {violation, false};
  }
  ++counters.source_adverts_received;
  if (arrived.payload_length == 0) return {};
  (void)sink_.OnPayload(arrived.payload_length, actions);  // [R8.2.7]
  outgoing.OweAcknowledgement();
  if (!AdvertReader::KeepsInline(arrived.payload_length)) {
    receive_.OnPayload(arrived.buffer, arrived.payload_offset, arrived.payload_length);
  }
  return {nullptr, true};
}

void InboundHalf::OnSrcAvailCancel(uint32_t sequence, Credits& credits, Counters& counters) {
  UseInlineBytes();
  ++counters.source_cancels_received;
  if (!reader_.OnSrcAvailCancel()) return;
  if (reader_.HoldsAcknowledgement()) credits.HoldAcknowledgement(sequence - 1);
}

InboundHalf::Written InboundHalf::OnRdmaWrCompl(const MessageArrived& arrived, Outgoing& outgoing,
                                                Actions& actions, Counters& counters) {
  const auto& completion = std::get<wire::RdmaWrCompl>(arrived.message.body);
  const SinkAdverts::Taken taken =
      sink_.OnRdmaWrCompl(completion.length, arrived.invalidated_key, arrived.written, actions);
  if (taken.violation != nullptr || !taken.is_taken) return {taken.violation, false};
  receive_.OnWritten(taken.bytes, counters);
  sink_adverts_enabled_ = true;
  outgoing.OweAnswerToWrite();
  return {nullptr, true};
}

void InboundHalf::OnSinkCancelAck(uint32_t acknowledged, Actions& actions) {
  if (!sink_.OnSinkCancelAck(acknowledged, actions)) return;
  receive_.OnAdvertsDropped(actions);
}

void InboundHalf::OnReadFinished(Outgoing& outgoing, Counters& counters) {
  outgoing.OnRdmaFinished();
  const AdvertReader::FinishedRead read = reader_.OnReadFinished();
  receive_.OnReadFinished(read.operation_number, read.length, counters);
}

void InboundHalf::TakeInlineBytes() {
  const AdvertReader::Inline bytes = reader_.UseInline();
  receive_.OnPayload(bytes.buffer, bytes.offset, bytes.length);
}

// --- unread bytes reach receives, and adverts are read ---

bool InboundHalf::Deliver(const DeliveryTerms& terms, Outgoing& outgoing, Actions& actions,
                          Counters& counters) {
  Reading reading = Reading::kWaits;
  do {
    while (receive_.may_copy()) {
      const auto emptied = receive_.CopyNext(actions, counters);
      if (emptied) PostAgain(*emptied, terms.may_post, outgoing, actions);
    }
    reading = Reading::kWaits;
    if (reader_.active() && MayRead(terms)) reading = ReadAdvert(terms, outgoing, actions);
  } while (reading == Reading::kDeliverFirst);
  if (receive_.MayFinish(terms.end_of_stream)) {
    receive_.FinishReady(reader_.brings_more(), terms.end_of_stream, counters, actions);
  }
  return reading == Reading::kCrossed;
}

// [R7.1.3, R6.2, R25.3] Starts reads as far as receives, the device and the policy allow.
InboundHalf::Reading InboundHalf::ReadAdvert(const DeliveryTerms& terms, Outgoing& outgoing,
                                             Actions& actions) {
  while (const uint32_t left = reader_.left()) {
    if (!receive_.has_room()) {
      adverts_crossed_ = adverts_crossed_ || terms.has_source_adverts;
      return terms.has_source_adverts ? Reading::kCrossed : Reading::kWaits;
    }
    if (receive_.has_unread()) return Reading::kDeliverFirst;
    const ReceiveRoom room = *receive_.Room();
    if (room.until_advert) {
      receive_.EndShort();
      continue;
    }
    if (!ReadsIntoRoom(room, left, reads_out_max_ > 0)) {
      if (room.may_end_short) {
        receive_.EndShort();
        continue;
      }
      RefuseAdvert();
      return Reading::kDeliverFirst;
    }
    if (reader_.reads_in_flight() >= reads_out_max_ || !outgoing.HasSlot(kWorkSlotsForControl)) {
      return Reading::kWaits;
    }
    if (reader_.IsAhead(read_ahead_bytes_)) return Reading::kWaits;
    const uint32_t read_max = std::min(room.range.length, read_bytes_max_);
    if (reader_.fresh() && !SettleInlineBytes(read_max, terms, outgoing, actions)) {
      return Reading::kDeliverFirst;
    }
    const OperationRange target{room.range.operation, std::min(read_max, reader_.left()),
                                room.range.offset};
    const uint64_t number = receive_.OnReadStarted(target.length);
    outgoing.OnRdmaPosted();
    Append<Read>(actions) = reader_.StartRead(target, number);
  }
  return Reading::kWaits;
}

// A few inline bytes are read again with the rest, unless the first read would not cover them.
// False: they are unread bytes now.
bool InboundHalf::SettleInlineBytes(uint32_t first_read_bytes, const DeliveryTerms& terms,
                                    Outgoing& outgoing, Actions& actions) {
  if (first_read_bytes <= reader_.inline_bytes()) {
    TakeInlineBytes();
    return false;
  }
  PostAgain(reader_.RereadInline().buffer, terms.may_post, outgoing, actions);
  return true;
}

void InboundHalf::RefuseAdvert() {
  UseInlineBytes();
  reader_.Refuse();
}

void InboundHalf::Discard(Outgoing& outgoing, Actions& actions) {
  if (reader_.left() > 0) RefuseAdvert();
  while (receive_.has_unread()) {
    PostAgain(receive_.DropOldestUnread(), true, outgoing, actions);
  }
}

void InboundHalf::SendReadAnswers(uint32_t hints_from, Outgoing& outgoing, Actions& actions,
                                  Counters& counters) {
  using Answer = AdvertReader::Answer;
  for (;;) {
    const Answer answer = reader_.NextAnswer();
    if (answer == Answer::kNone || !outgoing.MaySendReport(reader_.reads_in_flight())) return;
    if (answer == Answer::kSendSm || !outgoing.MaySendControl()) {
      outgoing.credits().ReleaseAcknowledgement();  // [R7.4.4, R7.4.5]
    }
    if (answer == Answer::kRdmaRdCompl) {
      const AdvertReader::Completion completion = reader_.TakeRdmaRdCompl();
      Send& send = outgoing.Post(completion.message, Outgoing::Kind::kControl, actions, counters);
      if (receive_.LargeReceives() >= hints_from) send.message.base.flags |= wire::kFlagReqPipe;
      if (invalidates_) send.invalidate_key = completion.finished_key;
    } else {
      reader_.TakeSendSm();
      outgoing.Post(wire::SendSm{}, Outgoing::Kind::kControl, actions, counters);
      ++counters.send_sm_sent;
    }
    if (!reader_.HoldsAcknowledgement()) outgoing.credits().ReleaseAcknowledgement();
  }
}

// --- our SinkAvails ---

void InboundHalf::OfferSink(size_t room, size_t share, const Outgoing& outgoing, Actions& actions) {
  if (!sink_adverts_enabled_ || !shows_receives_ || !sink_.may_offer()) return;  // [R5.12]
  // [R8.1.1, R8.3.3] Not over a SrcAvail; nor where bytes wait that come first.
  if (reader_.active() || receive_.has_unread()) return;
  if (sink_.outstanding() >= share || room == 0) return;
  if (!outgoing.HasSlot(kWorkSlotsForControl) || !outgoing.MaySendControl()) return;
  const auto place = receive_.NextToAdvertise();
  // [R11.9] And larger than what comes once the answer is out: it may be filled later than that.
  if (!place || !AdvertisesRoom(place->room, buffers_.message_bytes_max())) return;
  sink_.Offer(place->room.range, place->operation_number, actions);
}

Send& InboundHalf::PostSinkAvail(Outgoing::Kind kind, Outgoing& outgoing, Actions& actions,
                                 Counters& counters) {
  // Nothing was sent since the offer, so credit and slot are still there.
  Send& send = outgoing.Post(sink_.Message(), kind, actions, counters);
  sink_.OnPosted();
  receive_.OnAdvertised();
  ++counters.sink_adverts_sent;
  return send;
}

void InboundHalf::SendSinkCancel(Outgoing& outgoing, Actions& actions, Counters& counters) {
  if (!sink_.cancel_owed() || !outgoing.MaySendControl()) return;
  const Send& send =
      outgoing.Post(wire::SinkAvailCancel{}, Outgoing::Kind::kControl, actions, counters);
  sink_.OnCancelPosted(send.message.base.sequence);
  ++counters.sink_cancels_sent;
}

void InboundHalf::DropSinkAdverts(Actions& actions) {
  if (sink_.outstanding() == 0) return;
  sink_.DropAll(actions);
  receive_.OnAdvertsDropped(actions);
}

// --- receive buffers ---

// A message of the size that the answer allows has to fit into each SinkAvail that it may meet: our
// answer waits for those that are too small.
void InboundHalf::SendResizeAnswer(Outgoing& outgoing, Actions& actions, Counters& counters) {
  if (!buffers_.answer_due() || !sink_.Fit(buffers_.bytes()) || !outgoing.MaySendControl()) return;
  counters.receive_resizes += buffers_.resized() ? 1u : 0u;
  outgoing.Post(buffers_.TakeAnswer(), Outgoing::Kind::kControl, actions, counters);
}

void InboundHalf::AddTo(Digest& digest) const {
  receive_.AddTo(digest);
  reader_.AddTo(digest);
  sink_.AddTo(digest);
  urgent_.AddTo(digest);
  buffers_.AddTo(digest);
  digest.Add(sink_adverts_enabled_).Add(adverts_crossed_).Add(reads_out_max_).Add(invalidates_);
}

}  // namespace esdp::sdp
