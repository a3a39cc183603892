#include "impl/sdp/inbound/receive_queue.h"

#include <algorithm>

namespace esdp::sdp {

inline void ReceiveQueue::Finish(const Operation& operation, Outcome outcome, bool at_end,
                                 Actions& actions) {
  FinishOperation& finish = Append<FinishOperation>(actions);
  finish.operation = operation.id;
  finish.outcome = outcome;
  finish.bytes = operation.assigned - operation.in_flight;
  const bool is_short = finish.bytes < operation.length || operation.length == 0;
  finish.end_of_stream = at_end && outcome == Outcome::kDone && is_short;
  finish.urgent = operation.urgent;
  finish.written = operation.written;
  finish.bytes_zero_copy = operation.zero_copy;
  finish.stream_offset = operation.assigned > 0 ? operation.begin : assigned_;
}

// --- the application ---

void ReceiveQueue::Ask(const AskReceive& ask) {
  const bool follows = !operations_.empty() && operations_.back().open;
  Operation& operation = follows ? operations_.back() : operations_.PushBack();
  if (!follows) {
    operation.id = ask.piece.operation;
    operation.wait_all = ask.wait_all;
  }
  operation.open = ask.more;
  operation.length += ask.piece.length;
  if (ask.piece.length == 0 || operation.ends_short) return;
  Piece& piece = pieces_.PushBack();
  piece.range = ask.piece;
  piece.number = first_number_ + operations_.size() - 1;
  piece.zcopy_min = ask.zcopy_min;
  piece.path = ask.path;
  piece.placeable = ask.placeable;
  piece.shown = ask.shown;
  piece.until_advert = ask.until_advert;
}

void ReceiveQueue::AskRefused(const AskReceive& ask, Outcome outcome) {
  const bool follows = !operations_.empty() && operations_.back().open;
  if (!follows) {
    Operation operation;
    operation.id = ask.piece.operation;
    operation.outcome = outcome;
    operation.ends_short = true;
    operations_.PushBack(operation);
  }
  operations_.back().open = ask.more;
}

ReceiveQueue::CancelAnswer ReceiveQueue::Cancel(OperationId id, Outcome outcome, Actions& actions) {
  size_t index = 0;
  while (index < operations_.size() &&
         (operations_[index].id != id || operations_[index].finished)) {
    ++index;
  }
  if (index == operations_.size() || operations_[index].open) return CancelAnswer::kUnknown;
  Operation& operation = operations_[index];
  if (IsAdvertised(first_number_ + index)) {
    operation.cancel_as = outcome;
    return CancelAnswer::kAdvertised;
  }
  if (operation.ends_short) return CancelAnswer::kFull;
  if (operation.assigned > 0 && operation.assigned == operation.length) return CancelAnswer::kFull;
  GiveUp(first_number_ + index, outcome, actions);
  return CancelAnswer::kCancelled;
}

bool ReceiveQueue::Has(OperationId operation) const {
  for (const Operation& it : operations_) {
    if (it.id == operation && !it.finished) return true;
  }
  return false;
}

void ReceiveQueue::Bound(OperationId operation, Time end_by) {
  for (Operation& it : operations_) {
    const bool taken_back = it.cancel_as != Outcome::kDone || it.outcome != Outcome::kDone;
    if (it.id == operation && taken_back) it.end_by = std::min(it.end_by, end_by);
  }
}

Time ReceiveQueue::NextEndBy() const {
  Time next = kTimeInfinite;
  for (const Operation& it : operations_) {
    if (!it.finished) next = std::min(next, it.end_by);
  }
  return next;
}

// It takes no more bytes and ends with `outcome`: at once, if it may overtake those before it.
void ReceiveQueue::GiveUp(uint64_t number, Outcome outcome, Actions& actions) {
  DropPieces(number);
  Operation& operation = At(number);
  operation.ends_short = true;
  operation.outcome = outcome;
  FinishEarly(operation, actions);
}

// [es-api D.2, 4] One that was cancelled and has moved no byte need not wait for its turn; for its
// keys to die it must [11].
void ReceiveQueue::FinishEarly(Operation& operation, Actions& actions) {
  const bool cancelled =
      operation.outcome == Outcome::kCancelled || operation.outcome == Outcome::kDeadlineExceeded;
  if (!cancelled || operation.assigned > 0 || operation.exposed > 0) return;
  Finish(operation, operation.outcome, /*at_end=*/false, actions);
  operation.finished = true;
}

void ReceiveQueue::DropPieces(uint64_t number) {
  for (size_t i = pieces_.size(); i > 0; --i) {
    if (pieces_[i - 1].number == number) pieces_.EraseAt(i - 1);
  }
}

// --- bytes ---

bool ReceiveQueue::Holds(ReceiveBuffer buffer) const {
  for (const Unread& unread : unread_) {
    if (unread.buffer == buffer) return true;
  }
  return false;
}

uint64_t ReceiveQueue::unread_bytes() const {
  uint64_t bytes = 0;
  for (const Unread& unread : unread_) bytes += unread.length;
  return bytes;
}

ReceiveBuffer ReceiveQueue::DropOldestUnread() {
  dropped_ = true;
  return unread_.TakeFront().buffer;
}

uint32_t ReceiveQueue::BuffersHeldBelow(uint32_t number) const {
  uint32_t count = 0;
  for (const Unread& unread : unread_) {
    if (static_cast<uint32_t>(unread.buffer) < number) ++count;
  }
  return count;
}

inline bool ReceiveQueue::IsWholeWith(uint32_t length) const {
  const Operation& oldest = operations_.front();
  const Piece& piece = pieces_.front();
  return piece.number == first_number_ && !oldest.open && oldest.exposed == 0 &&
         piece.range.length == oldest.length && (length == oldest.length || !oldest.wait_all);
}

// [R6.3] As CopyNext and FinishReady would.
void ReceiveQueue::CopyImmediate(ReceiveBuffer buffer, uint32_t offset, uint32_t length,
                                 bool decides, Actions& actions, Counters& counters) {
  const bool ends = decides && IsWholeWith(length);
  CopyFront({buffer, offset, length, false}, length, actions, counters);
  if (!ends) return;
  Finish(operations_.front(), Outcome::kDone, /*at_end=*/false, actions);
  ++counters.receives_copied;
  if (!pieces_.empty() && pieces_.front().number == first_number_) pieces_.PopFront();
  operations_.PopFront();
  ++first_number_;
}

// [R6.3]
std::optional<ReceiveBuffer> ReceiveQueue::CopyNext(Actions& actions, Counters& counters) {
  Unread& unread = unread_.front();
  const uint64_t number = pieces_.front().number;
  const uint32_t length = std::min(pieces_.front().range.length, unread.length);
  CopyFront(unread, length, actions, counters);
  unread.offset += length;
  unread.length -= length;
  if (unread.length > 0) return std::nullopt;
  const ReceiveBuffer emptied = unread.buffer;
  if (unread.urgent) EndAtUrgent(number);
  unread_.PopFront();
  return emptied;
}

// [R10.6] The mark is where an operation ends, also one that waits for all.
void ReceiveQueue::EndAtUrgent(uint64_t number) {
  At(number).urgent = At(number).ends_short = true;
  DropPieces(number);
}

std::optional<ReceiveRoom> ReceiveQueue::Room() const {
  if (pieces_.empty()) return std::nullopt;
  const Piece& piece = pieces_.front();
  const Operation& operation = At(piece.number);
  ReceiveRoom room;
  room.range = piece.range;
  room.zcopy_min = piece.zcopy_min;
  room.path = piece.path;
  room.placeable = piece.placeable;
  room.shown = piece.shown;
  room.until_advert = piece.until_advert;
  room.may_end_short = operation.assigned > 0 && !operation.wait_all;
  return room;
}

uint32_t ReceiveQueue::LargeReceives() const {
  uint32_t count = 0;
  for (size_t i = 0; i < pieces_.size() && i < 2; ++i) {
    const Piece& piece = pieces_[i];
    if (!piece.placeable || piece.path == Path::kCopy) continue;
    if (piece.path == Path::kZeroCopy || piece.range.length >= piece.zcopy_min) ++count;
  }
  return count;
}

uint64_t ReceiveQueue::OnReadStarted(uint32_t length) {
  const uint64_t number = pieces_.front().number;
  At(number).in_flight += length;
  Assign(length);
  return number;
}

void ReceiveQueue::OnReadFinished(uint64_t operation_number, uint32_t length, Counters& counters) {
  Operation& operation = At(operation_number);
  operation.in_flight -= length;
  operation.zero_copy += length;
  counters.bytes_received_zero_copy += length;
}

void ReceiveQueue::EndShort() {
  const uint64_t number = pieces_.front().number;
  At(number).ends_short = true;
  DropPieces(number);
}

// --- completion ---

// [es-api D.2, 6]
bool ReceiveQueue::IsReady(const Operation& operation, bool more_comes, bool at_end) const {
  if (operation.open || operation.in_flight > 0 || operation.exposed > 0) return false;
  if (operation.ends_short || operation.assigned == operation.length || at_end) return true;
  return operation.assigned > 0 && !operation.wait_all && !more_comes && unread_.empty();
}

void ReceiveQueue::FinishReady(bool more_comes, bool end_of_stream, Counters& counters,
                               Actions& actions) {
  const bool at_end = end_of_stream && unread_.empty() && !more_comes;
  while (!operations_.empty()) {
    Operation& operation = operations_.front();
    if (!operation.finished) {
      if (!IsReady(operation, more_comes, at_end)) return;
      if (operation.assigned < operation.length) DropPieces(first_number_);
      Finish(operation, operation.outcome, at_end && !dropped_ && NoBytesBehind(), actions);
      const bool mostly_read = 2 * operation.zero_copy > operation.assigned;
      if (operation.assigned > 0) {
        ++(mostly_read ? counters.receives_zero_copy : counters.receives_copied);
      }
    }
    operations_.PopFront();
    ++first_number_;
  }
}

// Those behind it may have got the last bytes while it waited for its keys to die.
bool ReceiveQueue::NoBytesBehind() const {
  for (size_t i = 1; i < operations_.size(); ++i) {
    if (operations_[i].assigned > 0) return false;
  }
  return true;
}

void ReceiveQueue::FinishAll(Outcome outcome, Actions& actions) {
  for (const Operation& operation : operations_) {
    if (operation.finished) continue;
    const bool decided = operation.outcome != Outcome::kDone;
    Finish(operation, decided ? operation.outcome : outcome, /*at_end=*/false, actions);
  }
  first_number_ += operations_.size();
  operations_.clear();
  pieces_.clear();
  advertised_ = 0;
}

void ReceiveQueue::AddTo(Digest& digest) const {
  digest.Add(assigned_).Add(first_number_).Add(operations_.size()).Add(pieces_.size());
  digest.Add(advertised_).Add(dropped_);
  for (const Operation& operation : operations_) {
    digest.Add(static_cast<uint32_t>(operation.id)).Add(operation.open).Add(operation.wait_all);
    digest.Add(operation.finished).Add(operation.ends_short);
    digest.Add(static_cast<uint8_t>(operation.outcome)).Add(operation.length);
    digest.Add(operation.assigned).Add(operation.in_flight).Add(operation.zero_copy);
    digest.Add(operation.begin).Add(operation.exposed).Add(operation.urgent);
    digest.Add(static_cast<uint8_t>(operation.cancel_as));
    digest.Add(static_cast<uint64_t>(operation.end_by.time_since_epoch().count()));
  }
  for (const Piece& piece : pieces_) {
    digest.Add(static_cast<uint32_t>(piece.range.operation)).Add(piece.range.offset);
    digest.Add(piece.range.length).Add(piece.number).Add(piece.zcopy_min);
    digest.Add(static_cast<uint8_t>(piece.path)).Add(piece.placeable);
    digest.Add(piece.shown).Add(piece.until_advert);
  }
  for (const Unread& unread : unread_) {
    digest.Add(static_cast<uint16_t>(unread.buffer))
        .Add(unread.offset)
        .Add(unread.length)
        .Add(unread.urgent);
  }
}

}  // namespace esdp::sdp
