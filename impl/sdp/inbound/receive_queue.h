#ifndef ESDP_IMPL_SDP_INBOUND_RECEIVE_QUEUE_H_
#define ESDP_IMPL_SDP_INBOUND_RECEIVE_QUEUE_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/common/policy.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"

namespace esdp::sdp {

// The inbound stream: unread bytes in receive buffers, receive operations in posting order, and the
// order of their completion. Bytes that the peer has only advertised come behind all unread ones,
// in every mode: while an advert is outstanding no Data may come, but the rest of the oldest one
// [5, 7.2]. So the stream is this queue, and then the adverts of AdvertReader.
class ReceiveQueue {
 public:
  // --- the application ---
  void Ask(const AskReceive& ask);
  // Takes an operation that is too late; it ends with `outcome` when its turn comes.
  void AskRefused(const AskReceive& ask, Outcome outcome);
  enum class CancelAnswer : uint8_t { kUnknown, kCancelled, kFull, kAdvertised };
  // kFull: it takes no more bytes, and ends as it would. kAdvertised: it ends once the advert does.
  CancelAnswer Cancel(OperationId operation, Outcome outcome, Actions& actions);
  // What is taken back and has not ended by `end_by` is overdue; so is the earliest of them.
  void Bound(OperationId operation, Time end_by);
  Time NextEndBy() const;
  bool Has(OperationId operation) const;  // its event is not out

  // --- bytes that arrived ---
  void OnPayload(ReceiveBuffer buffer, uint32_t offset, uint32_t length) {
    unread_.PushBack() = {buffer, offset, length, false};
  }
  // The same in one, where a receive waits that takes all of it: nothing is unread afterwards.
  bool MayCopyImmediate(uint32_t length) const {
    return unread_.empty() && advertised_ == 0 && !pieces_.empty() &&
           length <= pieces_.front().range.length;
  }
  // `decides`: no other bytes may follow, nor the end of the stream; a receive that has enough
  // ends.
  void CopyImmediate(ReceiveBuffer buffer, uint32_t offset, uint32_t length, bool decides,
                     Actions& actions, Counters& counters);
  void OnUrgentByte() { unread_.back().urgent = true; }  // the last of the payload before
  bool has_unread() const { return !unread_.empty(); }
  uint64_t unread_bytes() const;
  bool may_copy() const { return !unread_.empty() && pieces_.size() > advertised_; }
  // Copies one run of unread bytes into the next place; while may_copy(). The buffer it used up.
  std::optional<ReceiveBuffer> CopyNext(Actions& actions, Counters& counters);

  // --- bytes to be read from the peer ---
  std::optional<ReceiveRoom> Room() const;  // where the next byte goes
  bool has_room() const { return !pieces_.empty(); }
  // Places that the policy would have read into, waiting; counted up to a few.
  uint32_t LargeReceives() const;
  // A read of `length` bytes into the front of Room() starts. Returns the operation's number.
  uint64_t OnReadStarted(uint32_t length);
  void OnReadFinished(uint64_t operation_number, uint32_t length, Counters& counters);
  // The operation at Room() takes no more bytes.
  void EndShort();

  // --- memory that the peer may write to ---
  // The places shown to the peer are the first ones, in order. While there are any, no byte is
  // unread: what arrives goes to the first of them.
  struct AdvertPlace {
    ReceiveRoom room;
    uint64_t operation_number = 0;
  };
  // The place behind the last one shown. Nothing, where a short fill of that one would not end its
  // operation, so that the bytes behind must wait.
  std::optional<AdvertPlace> NextToAdvertise() const;
  void OnAdvertised();     // NextToAdvertise() is shown
  void OnExposeRefused();  // it cannot be
  size_t advertised() const { return advertised_; }
  // The first one is not shown any more: the peer has written its first `bytes` bytes, or they lie
  // in a receive buffer and are copied. Its operation ends with them, if it need not wait.
  void OnWritten(uint32_t bytes, Counters& counters);
  void CopyInstead(ReceiveBuffer buffer, uint32_t offset, uint32_t bytes, Actions& actions,
                   Counters& counters);
  // [10] The last byte of these was urgent: the operation takes no more.
  void EndAtUrgent(uint64_t number);
  // None is shown any more, and nothing was written to those that were.
  void OnAdvertsDropped(Actions& actions);
  // One key less to this operation's memory.
  void OnWithdrawn(uint64_t operation_number, Actions& actions);
  void OnAllWithdrawn();
  // Ends every operation, in its turn and when the peer can reach it no more.
  void CancelAll(Outcome outcome, Actions& actions);

  // Finishes what is done, in order. `more_comes`: bytes will follow without the application's
  // doing. `end_of_stream`: none ever will, beyond those unread.
  void FinishReady(bool more_comes, bool end_of_stream, Counters& counters, Actions& actions);
  // False: FinishReady has nothing to do.
  bool MayFinish(bool end_of_stream) const {
    if (operations_.empty()) return false;
    const Operation& oldest = operations_.front();
    return oldest.assigned == oldest.length || (oldest.assigned > 0 && !oldest.wait_all) ||
           oldest.ends_short || oldest.finished || end_of_stream;
  }
  void FinishAll(Outcome outcome, Actions& actions);

  bool empty() const { return operations_.empty(); }
  size_t buffers_held() const { return unread_.size(); }
  bool Holds(ReceiveBuffer buffer) const;
  uint32_t BuffersHeldBelow(uint32_t number) const;
  void DropUnread() { unread_.clear(); }
  // Bytes that no receive will get: from here on none meets the end of the stream.
  ReceiveBuffer DropOldestUnread();

  bool InvariantsHold() const {
    if (operations_.empty()) return pieces_.empty() && advertised_ == 0;
    if (advertised_ > pieces_.size() || (advertised_ > 0 && !unread_.empty())) return false;
    const Operation& front = operations_.front();
    return front.assigned <= front.length && front.in_flight <= front.assigned;
  }
  void AddTo(Digest& digest) const;

 private:
  struct Operation {
    OperationId id{};
    bool open = false, wait_all = false;  // open: more pieces follow
    bool finished = false;                // cancelled: its event is out, only the place is left
    bool ends_short = false;
    bool urgent = false;   // its last byte is urgent: it takes no more
    bool written = false;  // some of its bytes, by the peer
    Outcome outcome = Outcome::kDone;
    uint64_t length = 0;
    uint64_t assigned = 0;   // bytes that have found their place in it
    uint64_t in_flight = 0;  // of them, still being read
    uint64_t zero_copy = 0;
    uint64_t begin = 0;                  // stream position of its first byte
    uint32_t exposed = 0;                // keys to its memory that are not dead
    Outcome cancel_as = Outcome::kDone;  // asked for while it was shown to the peer
    Time end_by = kTimeInfinite;         // where it was cancelled
  };
  struct Piece {
    OperationRange range;
    uint64_t number = 0;
    uint64_t zcopy_min = 0;
    Path path = Path::kByThreshold;
    bool placeable = false;
    bool shown = true;
    bool until_advert = false;
  };
  struct Unread {
    ReceiveBuffer buffer{};
    uint32_t offset = 0, length = 0;
    bool urgent = false;  // the last byte is
  };

  Operation& At(uint64_t number) { return operations_[number - first_number_]; }
  const Operation& At(uint64_t number) const { return operations_[number - first_number_]; }
  void Assign(uint32_t length) {
    Piece& piece = pieces_.front();
    Operation& operation = At(piece.number);
    if (operation.assigned == 0) operation.begin = assigned_;
    operation.assigned += length;
    assigned_ += length;
    piece.range.offset += length;
    piece.range.length -= length;
    if (piece.range.length == 0) pieces_.PopFront();
  }
  void CopyFront(const Unread& unread, uint32_t length, Actions& actions, Counters& counters) {
    CopyIn& copy = Append<CopyIn>(actions);
    copy.buffer = unread.buffer;
    copy.buffer_offset = unread.offset;
    copy.target = pieces_.front().range;
    copy.target.length = length;
    Assign(length);
    ++counters.payload_copies;
    counters.payload_copy_bytes += length;
    counters.bytes_received_copied += length;
  }
  bool IsWholeWith(uint32_t length) const;  // the oldest operation, by the front piece alone
  void DropPieces(uint64_t number);
  bool IsAdvertised(uint64_t number) const;
  void GiveUp(uint64_t number, Outcome outcome, Actions& actions);
  void FinishEarly(Operation& operation, Actions& actions);
  void AfterFill(uint64_t number);
  bool IsReady(const Operation& operation, bool more_comes, bool at_end) const;
  bool NoBytesBehind() const;  // behind the oldest operation
  void Finish(const Operation& operation, Outcome outcome, bool at_end, Actions& actions);

  GrowingRing<Operation> operations_;
  uint64_t first_number_ = 0;  // of operations_[0]
  GrowingRing<Piece> pieces_;  // none is empty
  size_t advertised_ = 0;      // of the pieces, the first so many
  GrowingRing<Unread, 32> unread_;
  uint64_t assigned_ = 0;  // stream position of the next byte to find a place
  bool dropped_ = false;   // bytes, before they found one
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INBOUND_RECEIVE_QUEUE_H_
