#include <algorithm>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/outbound/send_queue.h"

// Where urgent bytes lie in the outbound stream [10]. Each is the last byte of its operation and
// ends a Data message; no advert covers it.

namespace esdp::sdp {

std::optional<uint64_t> SendQueue::UrgentAhead() const {
  if (urgent_marks_.empty()) return std::nullopt;
  uint64_t gone = taken_;
  for (const Piece& remainder : remainders_) gone -= remainder.range.length;
  for (const Filled& filled : filled_) gone -= filled.bytes;
  return urgent_marks_.front().end - gone;
}

bool SendQueue::CarriesNextUrgent(OperationId operation) const {
  return !urgent_marks_.empty() && urgent_marks_.front().id == operation;
}

bool SendQueue::HasUrgent(OperationId operation) const {
  for (const UrgentMark& mark : urgent_marks_) {
    if (mark.id == operation) return true;
  }
  return false;
}

// [R10.2] No message carries the urgent byte and more than kUrgentAheadMax bytes before it: its
// notice may have to ride on the same message.
uint32_t SendQueue::GatherRoomBeforeUrgent() const {
  const uint64_t ahead = urgent_marks_.front().end - taken_;
  const uint64_t most = ahead > kUrgentAheadMax ? ahead - kUrgentAheadMax : ahead;
  return static_cast<uint32_t>(std::min<uint64_t>(most, limits_.payload_max));
}

// [R10.3] The operation may have ended long ago: its bytes were copied.
void SendQueue::OnUrgentTaken(Send& send) {
  send.message.base.flags |= wire::kFlagOobPresent;
  urgent_marks_.PopFront();
}

void SendQueue::OnUrgentCancelled(const Operation& operation, uint64_t bytes) {
  for (size_t i = urgent_marks_.size(); i > 0; --i) {
    UrgentMark& mark = urgent_marks_[i - 1];
    if (mark.id == operation.id) {
      urgent_marks_.EraseAt(i - 1);
    } else if (mark.end > operation.end) {
      mark.end -= bytes;
    }
  }
}

}  // namespace esdp::sdp
