#include <algorithm>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/outbound/send_queue.h"

// The send queue's bytes that the peer is asked to read, and the cancel that takes them back.

namespace esdp::sdp {

// --- adverts ---

uint32_t SendQueue::LargeSends(bool may_advertise) const {
  uint32_t count = static_cast<uint32_t>(advertised_.size());
  for (size_t i = 0; i < pieces_.size() && i < 2; ++i) {
    if (RouteOf(pieces_[i], may_advertise) == SendRoute::kAdvertise) ++count;
  }
  return count;
}

OperationRange SendQueue::AdvertCandidate() const {
  OperationRange range = pieces_.front().range;
  if (pieces_.front().urgent) --range.length;  // [R10.4] never in a SrcAvail
  range.length = std::min(range.length, wire::kAdvertBytesMax);
  return range;
}

void SendQueue::OnExposeFailed() { pieces_.front().RefuseExposure(); }

uint64_t SendQueue::TakeAdvert(const OperationRange& range, uint32_t inline_bytes, Send& send) {
  Piece& piece = pieces_.front();
  const uint64_t number = piece.number;
  Operation& operation = At(number);
  ++operation.exposures;
  Advertised& advertised = advertised_.PushBack();
  advertised.piece = piece;
  advertised.inline_bytes = inline_bytes;
  advertised.piece.urgent = false;
  advertised.piece.range = {range.operation, range.length - inline_bytes,
                            range.offset + inline_bytes};
  last_taken_ = {emitted_, std::nullopt};
  if (inline_bytes > 0) {
    send.gather[0] = {range.operation, inline_bytes, range.offset};
    send.gather_count = 1;
    emitted_ += inline_bytes;
  }
  taken_ += range.length;
  operation.uncopied_end = taken_;
  piece.range.offset += range.length;
  piece.range.length -= range.length;
  piece.traits.length = piece.range.length;
  if (piece.range.length == 0) {
    pieces_.PopFront();
  } else {
    Judge(piece);
  }
  return number;
}

void SendQueue::OnAdvertRead(uint32_t bytes, Counters& counters) {
  Piece& piece = advertised_.front().piece;
  piece.range.offset += bytes;
  piece.range.length -= bytes;
  At(piece.number).zero_copy += bytes;
  emitted_ += bytes;
  counters.bytes_sent_zero_copy += bytes;
}

// The inline byte that Combined mode demands is no copy and no Data: an advert that was read to its
// end counts as zero-copy whole.
void SendQueue::OnAdvertComplete() {
  const Advertised& done = advertised_.front();
  At(done.piece.number).zero_copy += done.inline_bytes;
  advertised_.PopFront();
}

void SendQueue::OnAdvertRefused() {  // [R7.2.2, R7.2.3]
  remainders_.PushBack(advertised_.TakeFront().piece);
}

void SendQueue::OnWithdrawn(uint64_t operation_number) {
  if (operation_number < first_number_) return;  // the connection ended before
  if (operation_number - first_number_ >= operations_.size()) return;
  Operation& operation = At(operation_number);
  if (operation.exposures > 0) --operation.exposures;
}

// Advertised anew, they could meet the peer's again, round after round.
void SendQueue::OnAdvertsCancelled() {
  for (Advertised& advertised : advertised_) advertised.piece.RefuseExposure();
}

void SendQueue::OnAdvertsRevoked(Actions& actions) {  // [R7.4.7, R8.3.2]
  while (!advertised_.empty()) {
    Piece piece = advertised_.TakeBack().piece;
    taken_ -= piece.range.length;
    piece.traits.length = piece.range.length;
    Judge(piece);
    pieces_.PushFront(piece);
  }
  for (Operation& operation : operations_) {
    operation.uncopied_end = std::min(operation.uncopied_end, taken_);
  }
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].cancel != Outcome::kDone) ResolveCancel(i, actions);
  }
}

// --- cancel [es-api D.2, 8] ---

SendQueue::CancelAnswer SendQueue::Cancel(const AskCancel& ask, Actions& actions) {
  size_t index = 0;
  while (index < operations_.size() &&
         (operations_[index].id != ask.operation || operations_[index].finished ||
          operations_[index].dropped)) {
    ++index;
  }
  if (index == operations_.size() || operations_[index].open) return CancelAnswer::kUnknown;
  Operation& operation = operations_[index];
  if (taken_ <= operation.begin) {
    Drop(index, ask.outcome, actions);
    return CancelAnswer::kCancelled;
  }
  const bool ends_short = ask.mode == CancelMode::kEndShort;
  if (!IsAdvertised(first_number_ + index)) {
    if (ends_short) EndShort(index, ask.outcome);
    return CancelAnswer::kBegun;
  }
  // [R10.1] By the time its adverts have come back its urgent byte may have been announced.
  if (HasUrgent(operation.id)) return CancelAnswer::kBegun;
  operation.cancel = ask.outcome;
  operation.ends_short = ends_short;
  return emitted_ > operation.begin ? CancelAnswer::kPartlyRead : CancelAnswer::kAdvertised;
}

bool SendQueue::Has(OperationId operation) const {
  for (const Operation& it : operations_) {
    if (it.id == operation && !it.finished) return true;
  }
  return false;
}

void SendQueue::Bound(OperationId operation, Time end_by) {
  for (Operation& it : operations_) {
    const bool taken_back =
        it.cancel != Outcome::kDone || it.dropped || it.outcome != Outcome::kDone;
    if (it.id == operation && taken_back) it.end_by = std::min(it.end_by, end_by);
  }
}

Time SendQueue::NextEndBy() const {
  Time next = kTimeInfinite;
  for (const Operation& it : operations_) {
    if (!it.finished) next = std::min(next, it.end_by);
  }
  return next;
}

bool SendQueue::IsAdvertised(uint64_t number) const {
  for (const Advertised& advertised : advertised_) {
    if (advertised.piece.number == number) return true;
  }
  return false;
}

void SendQueue::DropPieces(uint64_t number) {
  for (size_t i = pieces_.size(); i > 0; --i) {
    if (pieces_[i - 1].number == number) pieces_.EraseAt(i - 1);
  }
}

// The operation's bytes were never part of the stream: what follows moves up.
void SendQueue::Drop(size_t index, Outcome outcome, Actions& actions) {
  DropPieces(first_number_ + index);
  Operation& operation = operations_[index];
  if (has_urgent()) OnUrgentCancelled(operation, operation.end - operation.begin);
  MoveEnd(index, operation.begin);
  operation.uncopied_end = operation.begin;
  operation.outcome = outcome;
  operation.dropped = true;
  ++dropped_;
  FinishDropped(actions);
}

// The rest of the operation was never part of the stream: what follows moves up.
void SendQueue::EndShort(size_t index, Outcome outcome) {
  Operation& operation = operations_[index];
  if (taken_ >= operation.end) return;
  if (has_urgent()) OnUrgentCancelled(operation, operation.end - taken_);
  DropPieces(first_number_ + index);
  operation.outcome = outcome;
  MoveEnd(index, taken_);
}

// Nothing of what follows has left.
void SendQueue::MoveEnd(size_t index, uint64_t end) {
  const uint64_t length = operations_[index].end - end;
  operations_[index].end = end;
  for (size_t i = index + 1; i < operations_.size(); ++i) {
    operations_[i].begin -= length;
    operations_[i].end -= length;
    operations_[i].uncopied_end = operations_[i].begin;
  }
  asked_ -= length;
}

// [es-api D.2, 11] Not before the last of its keys is dead. It has moved no byte, so it may
// overtake.
void SendQueue::FinishDropped(Actions& actions) {
  for (Operation& operation : operations_) {
    if (!operation.dropped || operation.finished || operation.exposures > 0) continue;
    Finish(operation, 0, operation.outcome, actions);
    operation.finished = true;
    --dropped_;
  }
}

// Its adverts have come back.
void SendQueue::ResolveCancel(size_t index, Actions& actions) {
  Operation& operation = operations_[index];
  const Outcome outcome = operation.cancel;
  operation.cancel = Outcome::kDone;
  if (taken_ <= operation.begin) return Drop(index, outcome, actions);
  if (operation.ends_short) return EndShort(index, outcome);
  operation.end_by = kTimeInfinite;
  // The rest leaves on the way that needs nothing of the peer but buffers.
  for (Piece& piece : pieces_) {
    if (piece.number == first_number_ + index) piece.RefuseExposure();
  }
}

}  // namespace esdp::sdp
