#include <algorithm>

#include "impl/sdp/interface/config.h"
#include "impl/sdp/outbound/send_queue.h"

// What leaves by RDMA Write. It needs no exposure of ours, so every piece qualifies that would not
// be copied: also those below the threshold, which as Data would cost the peer a copy and an advert
// for each message.

namespace esdp::sdp {

std::optional<OperationRange> SendQueue::Writable(bool may_advertise) const {
  if (!remainders_.empty() || !filled_.empty() || !advertised_.empty()) return std::nullopt;
  if (pieces_.empty()) return std::nullopt;
  const Piece& piece = pieces_.front();
  // [10] An urgent byte ends a Data message.
  OperationRange range = piece.range;
  if (piece.urgent && --range.length == 0) return std::nullopt;
  const bool unwanted =
      piece.traits.path == Path::kCopy ||
      (piece.traits.path == Path::kByThreshold && piece.traits.zcopy_min == Config::kNever);
  if (unwanted || RouteOf(piece, may_advertise) == SendRoute::kCopy) return std::nullopt;
  return range;
}

void SendQueue::OnWriteStarted(uint32_t length, Counters& counters) {
  Piece& piece = pieces_.front();
  Operation& operation = At(piece.number);
  writes_.PushBack(emitted_);
  if (!unreported_) unreported_ = emitted_;
  emitted_ += length;
  taken_ += length;
  operation.zero_copy += length;
  operation.uncopied_end = std::max(operation.uncopied_end, emitted_);
  counters.bytes_sent_zero_copy += length;
  piece.Begin();
  piece.range.offset += length;
  piece.range.length -= length;
  if (piece.range.length == 0) pieces_.PopFront();
}

void SendQueue::OnWriteFinished() { writes_.PopFront(); }

void SendQueue::OnWritesReported(uint32_t sequence) {
  unacknowledged_.PushBack({sequence, *unreported_});
  unreported_.reset();
}

bool SendQueue::CopiedFit(uint32_t room) const {
  if (!remainders_.empty() || filled_.empty() || filled_.front().urgent) return false;
  return filled_.front().bytes <= room;
}

}  // namespace esdp::sdp
