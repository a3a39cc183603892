#include "impl/sdp/outbound/outbound_half.h"

#include <algorithm>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

void OutboundHalf::Start(const Limits& limits) {
  limits_ = limits;
  send_.Start(limits.queue);
  resize_.Start(limits.peer_buffers.bytes, limits.peer_buffer_wish, limits.peer_buffers_by_need);
  ApplySize();
}

void OutboundHalf::OnQueuePairLeft(Actions& actions) {
  send_.OnQueuePairLeft();
  const bool advertised = source_.outstanding();
  while (const auto number = source_.OnQueuePairLeft()) send_.OnWithdrawn(*number);
  if (advertised) send_.OnAdvertsRevoked(actions);
  writer_ = AdvertWriter{};
}

// --- the application ---

void OutboundHalf::SendImmediate(const AskSend& ask, Outgoing& outgoing, Actions& actions,
                                 Counters& counters) {
  outgoing.SetStalled(false, counters);
  const SendBuffer buffer = send_.CopyImmediate(ask, actions, counters);
  Send& send = outgoing.Post(wire::Data{}, Outgoing::Kind::kPayload, actions, counters);
  send.send_buffer = buffer;
  send.copied_bytes = ask.piece.length;
  (void)send_.OnPosted(send.message.base.sequence, counters);
  writer_.OnPayloadPosted();
  send_.FinishImmediate(ask, actions, counters);
}

bool OutboundHalf::Cancel(const AskCancel& ask, Time end_by, const Outgoing& outgoing,
                          Actions& actions) {
  using Answer = SendQueue::CancelAnswer;
  // [10] Behind its OOB_PEND an urgent byte has to come.
  const bool promised = outgoing.urgent_noticed() && send_.CarriesNextUrgent(ask.operation);
  const Answer answer = promised ? Answer::kBegun : send_.Cancel(ask, actions);
  if (answer == Answer::kUnknown) return false;
  const bool shown = answer == Answer::kAdvertised || answer == Answer::kPartlyRead;
  if (shown && ask.mode != CancelMode::kAbortConnection) source_.AskCancel();
  send_.Bound(ask.operation, end_by);
  return true;
}

void OutboundHalf::AskAdaptive(AskSend ask, Time now, Counters& counters) {
  if (!threshold_.started()) threshold_.Start(ask.zcopy_min, limits_.peer_buffers);
  // Of an operation in several pieces the first alone would not tell the size.
  if (ask.path == Path::kByThreshold && ask.exposable && !ask.more && ask.piece.offset == 0) {
    ask.zcopy_min = threshold_.Begin(ask.piece.operation, ask.piece.length, now);
  } else {
    ask.zcopy_min = threshold_.in_force();
  }
  counters.adaptive_threshold = threshold_.in_force();
  send_.Ask(ask);
}

void OutboundHalf::LearnFromEnds(const Actions& actions, Time now, Counters& counters) {
  for (const Action& action : actions) {
    const auto* end = std::get_if<FinishOperation>(&action);
    if (end == nullptr) continue;
    threshold_.End(end->operation, end->bytes, end->bytes_zero_copy, end->outcome == Outcome::kDone,
                   now);
  }
  counters.adaptive_threshold = threshold_.in_force();
}

// --- payload ---

inline void OutboundHalf::PostPayload(SendQueue::Next next, bool may_advertise, Outgoing& outgoing,
                                      Actions& actions, Counters& counters) {
  const bool urgent = send_.has_urgent();
  Send& send = outgoing.Post(wire::Data{}, Outgoing::Kind::kPayload, actions, counters);
  bool cut = false;
  if (next == SendQueue::Next::kRemainder) {
    send_.TakeRemainder(send);
  } else if (next == SendQueue::Next::kCopied) {
    send_.TakeCopied(send);
  } else {
    cut = send_.TakeGathered(send, may_advertise);
  }
  OnPayloadPosted(send.message.base.sequence, counters, cut);
  if (!urgent) [[likely]]
    return;
  if ((send.message.base.flags & wire::kFlagOobPresent) != 0) {
    outgoing.OnUrgentByte(send.message.base, counters);
  }
  RefreshUrgentNotice(outgoing);
}

void OutboundHalf::SendPayload(const SourceTerms& terms, bool draining, Outgoing& outgoing,
                               Actions& actions, Counters& counters) {
  const bool may_advertise = MayAdvertise(terms);
  bool waits_for_credit = false;
  // [R5.9, R5.11] No payload while SrcAvails are outstanding, but the remainder of one that was
  // refused.
  while (writer_.idle() || !WritesHavePrecedence(may_advertise, outgoing, actions, counters)) {
    const SendQueue::Next next = send_.NextPayload(draining, may_advertise);
    if (next == SendQueue::Next::kNothing || !outgoing.HasSlot(kWorkSlotsForControl)) break;
    if (next == SendQueue::Next::kAdvert && !MayOffer(terms)) break;
    if (!outgoing.MaySendPayload()) {
      waits_for_credit = true;
      break;
    }
    if (next == SendQueue::Next::kAdvert) {
      Offer(terms.adverts, actions);
      break;
    }
    outgoing.SetStalled(false, counters);
    PostPayload(next, may_advertise, outgoing, actions, counters);
    CopySmall(may_advertise, actions, counters);
    if (send_.drained() && writer_.idle()) break;
  }
  outgoing.SetStalled(waits_for_credit, counters);
}

// --- our SrcAvails ---

bool OutboundHalf::MayOffer(const SourceTerms& terms) const {
  // [R7.4.1] A cancel must be Processed first.
  if (source_.cancelling() || terms.room == 0 || writer_.awaits_answer()) return false;
  return terms.adverts == AdvertAllowance::kMany ||
         (terms.adverts == AdvertAllowance::kOne && !source_.outstanding());
}

// [R5.8, R5.10] In Combined, where one is allowed, it carries the first byte.
void OutboundHalf::Offer(AdvertAllowance adverts, Actions& actions) {
  const bool combined = adverts == AdvertAllowance::kOne;
  source_.Offer(send_.AdvertCandidate(), combined ? kInlineBytes : 0, actions);
}

bool OutboundHalf::OnExposed(const Exposed& exposed, Outgoing& outgoing, Actions& actions,
                             Counters& counters) {
  if (!source_.OnExposed(exposed)) return false;
  // Nothing was sent since the offer, so credit and slot are still there.
  const uint32_t inline_bytes = source_.inline_bytes();
  const auto kind = inline_bytes > 0 ? Outgoing::Kind::kPayload : Outgoing::Kind::kControl;
  Send& send = outgoing.Post(source_.Message(), kind, actions, counters);
  const uint32_t sequence = send.message.base.sequence;
  const uint64_t number = send_.TakeAdvert(source_.range(), inline_bytes, send);
  if (inline_bytes > 0) OnPayloadPosted(sequence, counters);
  source_.OnPosted(number, sequence);
  RefreshUrgentNotice(outgoing);
  ++counters.source_adverts_sent;
  return true;
}

OutboundHalf::Read OutboundHalf::OnRdmaRdCompl(uint32_t length,
                                               std::optional<uint32_t> invalidated_key,
                                               Actions& actions, Counters& counters) {
  const SourceAdverts::Progress progress = source_.OnRdmaRdCompl(length, invalidated_key, actions);
  // [R7.2.4] The sink receives all of a remainder before it completes a later advert.
  if (progress.bytes_read > 0 && send_.in_remainder()) {
    return {"RdmaRdCompl: an earlier advert's remainder was not sent", false};
  }
  if (progress.violation != nullptr) return {progress.violation, false};
  if (progress.bytes_read > 0) send_.OnAdvertRead(progress.bytes_read, counters);
  if (progress.complete) send_.OnAdvertComplete();
  return {nullptr, progress.complete};
}

bool OutboundHalf::OnSendSm(uint32_t acknowledged, Actions& actions, Counters& counters) {
  ++counters.send_sm_received;
  const SourceAdverts::Progress progress = source_.OnSendSm(acknowledged, actions);
  if (progress.revoked) {
    send_.OnAdvertsCancelled();
    send_.OnAdvertsRevoked(actions);
  }
  if (progress.refused) send_.OnAdvertRefused();
  return progress.refused;
}

void OutboundHalf::SendSourceCancel(Outgoing& outgoing, Actions& actions, Counters& counters) {
  if (!source_.cancel_owed() || !outgoing.MaySendControl()) return;
  const Send& send =
      outgoing.Post(wire::SrcAvailCancel{}, Outgoing::Kind::kControl, actions, counters);
  source_.OnCancelPosted(send.message.base.sequence);
  ++counters.source_cancels_sent;
}

// --- the peer's SinkAvails ---

const char* OutboundHalf::OnSinkAvail(const wire::SinkAvail& advert,
                                      AdvertWriter::Legality legality, bool pipelined,
                                      size_t adverts_max, Actions& actions, Counters& counters) {
  const uint32_t message_bytes =
      std::min(resize_.size() - uint32_t{wire::kBaseHeaderBytes}, kDataBytesMax);
  const AdvertWriter::Arrival arrival =
      writer_.OnSinkAvail(advert, legality, message_bytes, adverts_max);
  if (arrival.violation != nullptr) return arrival.violation;
  ++counters.sink_adverts_received;
  if (arrival.stale) ++counters.stale_adverts;
  // [R8.3.1, R8.3.5] It wins over what we have advertised. [R5.19] So does one that is ignored: the
  // peer, with it outstanding, has passed over what we advertised before we left Pipelined.
  const bool before_change = pipelined || source_.inline_bytes() == 0;
  if (arrival.fresh && source_.outstanding() && before_change) {
    counters.source_adverts_lost += source_.count();
    source_.Override(actions);
    send_.OnAdvertsRevoked(actions);
  }
  return nullptr;
}

void OutboundHalf::SendSinkCancelAck(bool may_advertise, bool acknowledges, Outgoing& outgoing,
                                     Actions& actions, Counters& counters) {
  if (writer_.cancelled()) SendWrites(may_advertise, outgoing, actions, counters);
  // [R7.4.5, R8.4.7] With an MSeqAck that is held back it would be none to the peer.
  if (!writer_.ack_owed() || !acknowledges || !outgoing.MaySendControl()) return;
  outgoing.Post(wire::SinkCancelAck{}, Outgoing::Kind::kControl, actions, counters);
  writer_.TakeSinkCancelAck();
}

// [R8.3.1, R8.4.8] What can be written is written. True: no message with payload may leave now.
bool OutboundHalf::WritesHavePrecedence(bool may_advertise, Outgoing& outgoing, Actions& actions,
                                        Counters& counters) {
  if (writer_.live() > 0) SendWrites(may_advertise, outgoing, actions, counters);
  if (writer_.in_process() || writer_.ack_owed()) return true;
  return writer_.room() > 0 && send_.Writable(may_advertise);
}

// [R8.1.3, R8.1.4, R16.2] Writes, and behind those to one advert its RdmaWrCompl: when it is full,
// or when nothing more can be written now.
void OutboundHalf::SendWrites(bool may_advertise, Outgoing& outgoing, Actions& actions,
                              Counters& counters) {
  for (;;) {
    const std::optional<OperationRange> waiting = send_.Writable(may_advertise);
    const uint32_t room = writer_.room();
    if (writer_.in_process() && (room == 0 || !waiting)) {
      if (!outgoing.MaySendControl()) return;
      const AdvertWriter::Completion completion = writer_.TakeRdmaWrCompl();
      Send& send = outgoing.Post(completion.message, Outgoing::Kind::kControl, actions, counters);
      if (limits_.invalidates) send.invalidate_key = completion.finished_key;
      send_.OnWritesReported(send.message.base.sequence);
      writer_.OnCompletionPosted(send.message.base.sequence);
      continue;
    }
    if (!waiting || room == 0 || !outgoing.HasSlot(kWorkSlotsForControl)) return;
    OperationRange part = *waiting;
    part.length = std::min({part.length, room, limits_.write_bytes_max});
    actions.emplace_back(writer_.StartWrite(part));
    outgoing.OnRdmaPosted();
    send_.OnWriteStarted(part.length, counters);
    RefreshUrgentNotice(outgoing);
  }
}

bool OutboundHalf::MayRideAlong(const Outgoing& outgoing) const {
  if (source_.outstanding() || writer_.in_process() || writer_.ack_owed()) return false;
  const uint32_t room = resize_.size() - uint32_t{wire::kSinkAvailBytes};
  return outgoing.MaySendPayload() && send_.CopiedFit(room);
}

// --- the size of our messages ---

// [R6.1, R11.10]
void OutboundHalf::ApplySize() {
  const uint32_t payload = resize_.size() - uint32_t{wire::kBaseHeaderBytes};
  send_.SetPayloadMax(std::min(payload, kDataBytesMax));
}

void OutboundHalf::OnResizeDisregarded() {
  resize_.OnDisregarded();
  ApplySize();
}

const char* OutboundHalf::OnChRcvBufAck(uint32_t actual_size, const wire::BaseHeader& header) {
  if (const char* violation = resize_.OnAck(actual_size, header)) return violation;
  ApplySize();
  return nullptr;
}

// A message of the new size has to fit into each SinkAvail that it may meet: it is not used while
// we see any of the peer's.
void OutboundHalf::SendResizeRequest(bool may_ask, Outgoing& outgoing, Actions& actions,
                                     Counters& counters) {
  const uint32_t last_sent = outgoing.credits().last_sent();
  if (writer_.live() == 0 && resize_.Rises(last_sent)) {
    ++counters.peer_resizes;
    ApplySize();
  }
  if (!may_ask || !outgoing.MaySendControl() || !resize_.Due()) return;
  if (resize_.lowers() && send_.holds_copies()) return;  // filled for the size there was
  outgoing.Post(resize_.Take(last_sent + 1), Outgoing::Kind::kControl, actions, counters);
  ApplySize();
}

// --- the end ---

void OutboundHalf::OnAllDelivered(Counters& counters, Actions& actions) {
  send_.OnAllDelivered();
  send_.FinishReady(counters, actions);
}

void OutboundHalf::AddTo(Digest& digest) const {
  send_.AddTo(digest);
  source_.AddTo(digest);
  writer_.AddTo(digest);
  resize_.AddTo(digest);
  threshold_.AddTo(digest);
  digest.Add(limits_.peer_may_read).Add(limits_.invalidates);
}

}  // namespace esdp::sdp
