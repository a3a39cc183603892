#include "impl/sdp/inbound/receive_queue.h"
#include "impl/sdp/wire/messages.h"

// The receives that the peer may write to. One that was filled short ends there [8.1], so that the
// next one's bytes follow it; one that must not end short has nothing shown behind it, and is shown
// only when nothing waits there.

namespace esdp::sdp {

std::optional<ReceiveQueue::AdvertPlace> ReceiveQueue::NextToAdvertise() const {
  if (advertised_ == pieces_.size()) return std::nullopt;
  const Piece& piece = pieces_[advertised_];
  const Operation& operation = At(piece.number);
  if (operation.open || operation.ends_short || operation.in_flight > 0) return std::nullopt;
  if (operation.cancel_as != Outcome::kDone) return std::nullopt;
  if (advertised_ > 0) {
    const Piece& before = pieces_[advertised_ - 1];
    if (before.number == piece.number || At(before.number).wait_all) return std::nullopt;
  }
  // One at a time would have the peer take back at each what it has advertised for those behind.
  if (operation.wait_all && advertised_ + 1 < pieces_.size()) return std::nullopt;
  AdvertPlace place;
  place.room.range = piece.range;
  if (piece.range.length > wire::kAdvertBytesMax) place.room.range.length = wire::kAdvertBytesMax;
  place.room.zcopy_min = piece.zcopy_min;
  place.room.path = piece.path;
  place.room.placeable = piece.placeable;
  place.room.shown = piece.shown;
  place.room.may_end_short = operation.assigned > 0 && !operation.wait_all;
  place.operation_number = piece.number;
  return place;
}

void ReceiveQueue::OnAdvertised() {
  ++At(pieces_[advertised_].number).exposed;
  ++advertised_;
}

void ReceiveQueue::OnExposeRefused() { pieces_[advertised_].placeable = false; }

bool ReceiveQueue::IsAdvertised(uint64_t number) const {
  for (size_t i = 0; i < advertised_; ++i) {
    if (pieces_[i].number == number) return true;
  }
  return false;
}

void ReceiveQueue::OnWritten(uint32_t bytes, Counters& counters) {
  const uint64_t number = pieces_.front().number;
  At(number).zero_copy += bytes;
  At(number).written = true;
  counters.bytes_received_zero_copy += bytes;
  Assign(bytes);
  AfterFill(number);
}

void ReceiveQueue::CopyInstead(ReceiveBuffer buffer, uint32_t offset, uint32_t bytes,
                               Actions& actions, Counters& counters) {
  const uint64_t number = pieces_.front().number;
  CopyIn copy;
  copy.buffer = buffer;
  copy.buffer_offset = offset;
  copy.target = pieces_.front().range;
  copy.target.length = bytes;
  actions.emplace_back(copy);
  ++counters.payload_copies;
  counters.payload_copy_bytes += bytes;
  counters.bytes_received_copied += bytes;
  Assign(bytes);
  AfterFill(number);
}

void ReceiveQueue::AfterFill(uint64_t number) {
  --advertised_;
  Operation& operation = At(number);
  if (operation.assigned == operation.length) return;
  const bool cancelled = operation.cancel_as != Outcome::kDone;
  if (operation.wait_all && !cancelled) return;
  DropPieces(number);
  operation.ends_short = true;
  if (operation.wait_all) operation.outcome = operation.cancel_as;
}

void ReceiveQueue::OnAdvertsDropped(Actions& actions) {
  advertised_ = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (operation.cancel_as == Outcome::kDone || operation.finished) continue;
    if (operation.ends_short || operation.assigned == operation.length) continue;
    GiveUp(first_number_ + i, operation.cancel_as, actions);
  }
}

void ReceiveQueue::OnWithdrawn(uint64_t operation_number, Actions& actions) {
  if (operation_number < first_number_) return;
  Operation& operation = At(operation_number);
  --operation.exposed;
  if (operation.ends_short && !operation.finished) FinishEarly(operation, actions);
}

void ReceiveQueue::OnAllWithdrawn() {
  for (size_t i = 0; i < operations_.size(); ++i) operations_[i].exposed = 0;
  advertised_ = 0;
}

void ReceiveQueue::CancelAll(Outcome outcome, Actions& actions) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    if (operation.finished || operation.ends_short) continue;
    if (IsAdvertised(first_number_ + i)) {
      operation.cancel_as = outcome;
    } else if (operation.length == 0 || operation.assigned < operation.length) {
      GiveUp(first_number_ + i, outcome, actions);
    }
  }
}

}  // namespace esdp::sdp
