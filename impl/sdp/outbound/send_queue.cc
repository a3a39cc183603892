#include "impl/sdp/outbound/send_queue.h"

#include <algorithm>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

void SendQueue::Start(const Limits& limits) {
  limits_ = limits;
  SetPayloadMax(limits.payload_max);
  for (Piece& piece : pieces_) Judge(piece);
}

// --- the application ---

void SendQueue::Ask(const AskSend& ask) {
  const bool follows = !operations_.empty() && operations_.back().open;
  Operation& operation = follows ? operations_.back() : operations_.PushBack();
  if (!follows) {
    operation.id = ask.piece.operation;
    operation.complete_at = ask.complete_at;
    operation.begin = asked_;
  } else if (operation.outcome != Outcome::kDone) {
    operation.open = ask.more;
    return;
  }
  operation.open = ask.more;
  asked_ += ask.piece.length;
  operation.end = asked_;
  if (ask.piece.length == 0) return;
  if (pieces_.empty()) wants_advert_ = false;
  Piece& piece = pieces_.PushBack();
  piece.range = ask.piece;
  piece.number = first_number_ + operations_.size() - 1;
  piece.traits = TraitsOf(ask);
  piece.urgent = ask.urgent && !ask.more;
  Judge(piece);
  if (piece.urgent) urgent_marks_.PushBack({operation.id, operation.end});
}

void SendQueue::AskRefused(const AskSend& ask, Outcome outcome) {
  const bool follows = !operations_.empty() && operations_.back().open;
  if (!follows) {
    Operation operation;
    operation.id = ask.piece.operation;
    operation.outcome = outcome;
    operation.begin = operation.end = asked_;
    operations_.PushBack(operation);
  }
  operations_.back().open = ask.more;
}

// --- copying ---

std::optional<SendBuffer> SendQueue::TakeBuffer() {
  if (!free_buffers_.empty()) {
    const SendBuffer buffer = free_buffers_.back();
    free_buffers_.pop_back();
    return buffer;
  }
  if (buffers_used_ == limits_.send_buffers) return std::nullopt;
  free_buffers_.reserve(limits_.send_buffers);
  return SendBuffer{buffers_used_++};
}

SendBuffer SendQueue::CopyImmediate(const AskSend& ask, Actions& actions, Counters& counters) {
  const SendBuffer buffer = *TakeBuffer();
  CopyOut& copy = Append<CopyOut>(actions);
  copy.source = ask.piece;
  copy.buffer = buffer;
  copy.buffer_offset = 0;
  counters.payload_copies += ask.sends;
  counters.payload_copy_bytes += ask.piece.length;
  last_taken_ = {emitted_, buffer};
  asked_ = taken_ = emitted_ += ask.piece.length;
  return buffer;
}

void SendQueue::FinishImmediate(const AskSend& ask, Actions& actions, Counters& counters) {
  FinishOperation& finish = Append<FinishOperation>(actions);
  finish.operation = ask.piece.operation;
  finish.bytes = ask.piece.length;
  finish.stream_offset = last_taken_.begin;
  counters.sends_copied += ask.sends;
  ++first_number_;
}

// Copies what fits into the open buffer. False: no buffer is free.
bool SendQueue::CopyPart(Piece& piece, Actions& actions, Counters& counters) {
  if (filled_.empty() || filled_.back().urgent || filled_.back().bytes == BufferRoom()) {
    const std::optional<SendBuffer> buffer = TakeBuffer();
    if (!buffer) return false;
    filled_.PushBack({*buffer, 0, false});
  }
  Filled& open = filled_.back();
  CopyOut& copy = Append<CopyOut>(actions);
  copy.source = piece.range;
  copy.source.length = std::min(piece.range.length, BufferRoom() - open.bytes);
  copy.buffer = open.buffer;
  copy.buffer_offset = open.bytes;
  open.bytes += copy.source.length;
  piece.range.offset += copy.source.length;
  piece.range.length -= copy.source.length;
  taken_ += copy.source.length;
  open.urgent = piece.urgent && piece.range.length == 0;
  ++counters.payload_copies;
  counters.payload_copy_bytes += copy.source.length;
  return true;
}

void SendQueue::CopyWaiting(bool may_advertise, Actions& actions, Counters& counters) {
  // What is advertised may come back, and then goes first.
  if (!advertised_.empty()) return;
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    if (RouteOf(piece, may_advertise) != SendRoute::kCopy) return;
    if (!CopyPart(piece, actions, counters)) return;
    piece.Begin();
    if (piece.range.length == 0) pieces_.PopFront();
  }
}

// --- the wire ---

void SendQueue::TakeCopied(Send& send) {
  const Filled filled = filled_.TakeFront();
  send.send_buffer = filled.buffer;
  send.copied_bytes = filled.bytes;
  last_taken_ = {emitted_, filled.buffer};
  emitted_ += filled.bytes;
  if (filled.urgent) OnUrgentTaken(send);
}

// Adds the front of `piece` to the message; `room` is what the message still takes.
void SendQueue::Gather(Send& send, Piece& piece, uint32_t& room) {
  const uint32_t length = std::min(piece.range.length, room);
  send.gather[send.gather_count++] = {piece.range.operation, length, piece.range.offset};
  room -= length;
  piece.range.offset += length;
  piece.range.length -= length;
  piece.Begin();
  emitted_ += length;
  Operation& operation = At(piece.number);
  operation.uncopied_end = std::max(operation.uncopied_end, emitted_);
}

void SendQueue::TakeRemainder(Send& send) {
  // [R7.2.2] Exactly these bytes come next: nothing else shares their messages.
  last_taken_ = {emitted_, std::nullopt};
  uint32_t room = limits_.payload_max;
  Gather(send, remainders_.front(), room);
  if (remainders_.front().range.length == 0) remainders_.PopFront();
}

bool SendQueue::TakeGathered(Send& send, bool may_advertise) {
  last_taken_ = {emitted_, std::nullopt};
  uint32_t room = has_urgent() ? GatherRoomBeforeUrgent() : limits_.payload_max;
  do {
    Piece& piece = pieces_.front();
    if (RouteOf(piece, may_advertise) != SendRoute::kGather) break;
    const uint32_t before = room;
    Gather(send, piece, room);
    taken_ += before - room;
    if (piece.range.length > 0) return piece.range.length >= limits_.payload_max;
    if (piece.urgent) OnUrgentTaken(send);
    pieces_.PopFront();
  } while (!pieces_.empty() && room > 0 && send.gather_count < limits_.gather_max);
  return false;
}

void SendQueue::OnAllDelivered() {
  unfinished_.clear();
  unacknowledged_.clear();
  writes_.clear();
  unreported_.reset();
  for (Operation& operation : operations_) operation.exposures = 0;
}

void SendQueue::OnQueuePairLeft() {
  while (!unfinished_.empty()) OnPayloadFinished();
  unacknowledged_.clear();
}

// --- completion ---

void SendQueue::FinishOldest(Counters& counters, Actions& actions) {
  Operation& operation = operations_.front();
  if (!operation.finished) {
    const uint64_t bytes = operation.end - operation.begin;
    Finish(operation, bytes, operation.outcome, actions);
    if (operation.outcome == Outcome::kDone) {
      ++(2 * operation.zero_copy > bytes ? counters.sends_zero_copy : counters.sends_copied);
    }
  }
  operations_.PopFront();
  ++first_number_;
}

void SendQueue::FinishAll(Outcome outcome, Actions& actions) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    if (operation.finished) continue;
    const bool delivered = operation.complete_at == CompleteAt::kDelivered;
    const uint64_t reached = delivered ? std::min(Delivered(), emitted_) : emitted_;
    const uint64_t bytes = std::clamp(reached, operation.begin, operation.end) - operation.begin;
    const bool refused = operation.outcome != Outcome::kDone;
    Finish(operation, bytes, refused ? operation.outcome : outcome, actions);
  }
  first_number_ += operations_.size();
  operations_.clear();
  pieces_.clear();
  filled_.clear();
  advertised_.clear();
  remainders_.clear();
  dropped_ = 0;
  OnAllDelivered();
  asked_ = taken_ = emitted_;
  urgent_marks_.clear();
}

void SendQueue::AddTo(Digest& digest) const {
  digest.Add(asked_).Add(taken_).Add(emitted_).Add(first_number_).Add(buffers_used_);
  for (const Operation& operation : operations_) {
    digest.Add(static_cast<uint32_t>(operation.id)).Add(operation.open).Add(operation.finished);
    digest.Add(operation.dropped).Add(operation.ends_short).Add(operation.exposures);
    digest.Add(static_cast<uint64_t>(operation.end_by.time_since_epoch().count()));
    digest.Add(static_cast<uint8_t>(operation.cancel));
    digest.Add(static_cast<uint8_t>(operation.complete_at));
    digest.Add(static_cast<uint8_t>(operation.outcome)).Add(operation.begin).Add(operation.end);
    digest.Add(operation.uncopied_end).Add(operation.zero_copy);
  }
  const auto add_piece = [&digest](const Piece& piece) {
    digest.Add(static_cast<uint32_t>(piece.range.operation)).Add(piece.range.offset);
    digest.Add(piece.range.length).Add(piece.number).Add(piece.begun);
    digest.Add(piece.refused_exposure).Add(piece.traits.length).Add(piece.traits.zcopy_min);
    digest.Add(static_cast<uint8_t>(piece.traits.path))
        .Add(piece.traits.exposable)
        .Add(piece.traits.copyable)
        .Add(piece.urgent);
  };
  for (const UrgentMark& mark : urgent_marks_) digest.Add(mark.end);
  digest.Add(pieces_.size());
  for (const Piece& piece : pieces_) add_piece(piece);
  digest.Add(advertised_.size()).Add(remainders_.size());
  for (const Advertised& it : advertised_) {
    add_piece(it.piece);
    digest.Add(it.inline_bytes);
  }
  for (const Piece& piece : remainders_) add_piece(piece);
  for (const Filled& filled : filled_) {
    digest.Add(static_cast<uint16_t>(filled.buffer)).Add(filled.bytes).Add(filled.urgent);
  }
  for (const Unfinished& sent : unfinished_) {
    digest.Add(sent.begin).Add(sent.buffer ? 1u + static_cast<uint16_t>(*sent.buffer) : 0u);
  }
  for (const Unacknowledged& sent : unacknowledged_) digest.Add(sent.sequence).Add(sent.begin);
  for (const uint64_t begin : writes_) digest.Add(begin);
  digest.Add(unreported_.value_or(~uint64_t{0}));
  for (const SendBuffer buffer : free_buffers_) digest.Add(static_cast<uint16_t>(buffer));
}

}  // namespace esdp::sdp
