#ifndef ESDP_IMPL_SDP_OUTBOUND_SEND_QUEUE_H_
#define ESDP_IMPL_SDP_OUTBOUND_SEND_QUEUE_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/common/policy.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/outbound/send_queue_state.h"

namespace esdp::sdp {

// The outbound stream: send operations in posting order, cut into messages, and the order of their
// completion. Bytes are named by their position in the stream:
//
//   asked     end of the last operation
//   taken     moved out of the queue: copied, gathered into a message, or advertised
//   emitted   on the wire, or read by the peer
//
// Three sources feed messages, in this order: the remainders of adverts that the peer asked to be
// sent (SendSm), copied bytes in send buffers, queued pieces. While pieces are advertised nothing
// else is copied or gathered: what is not read of them comes back to the head of the queue.
class SendQueue : private SendQueueState {
 public:
  // What could leave next, if credits, slots and adverts allow.
  enum class Next : uint8_t { kNothing, kRemainder, kCopied, kGathered, kAdvert };

  using SendQueueState::Limits;
  void Start(const Limits& limits);

  // --- the application ---
  void Ask(const AskSend& ask);
  // Takes an operation that is too late; it ends with `outcome` when its turn comes.
  void AskRefused(const AskSend& ask, Outcome outcome);
  // kAdvertised: its adverts must be taken back, then OnAdvertsRevoked decides. kPartlyRead: so
  // that the rest goes as Data; it is too late for more.
  enum class CancelAnswer : uint8_t { kUnknown, kCancelled, kBegun, kAdvertised, kPartlyRead };
  CancelAnswer Cancel(const AskCancel& ask, Actions& actions);
  // What is taken back and has not ended by `end_by` is overdue; so is the earliest of them.
  void Bound(OperationId operation, Time end_by);
  Time NextEndBy() const;
  bool Has(OperationId operation) const;  // its event is not out

  // A whole operation that is copied and leaves in a message of its own, with nothing before it:
  // what Ask, CopyWaiting, TakeCopied and FinishReady make of it, without a queue in between. The
  // caller posts the message between the two calls, and tells OnPosted.
  bool MayLeaveImmediate(const AskSend& ask) const {
    return operations_.empty() && (unfinished_.empty() || ask.sends > 1) &&
           RouteOfCopied(TraitsOf(ask), limits_.policy) == SendRoute::kCopy && drained() &&
           !ask.more && !ask.urgent && ask.complete_at == CompleteAt::kReusable &&
           ask.piece.length > 0 && ask.piece.length <= immediate_max_ &&
           !WantsAdvert(TraitsOf(ask)) && has_free_buffer();
  }
  SendBuffer CopyImmediate(const AskSend& ask, Actions& actions, Counters& counters);
  void FinishImmediate(const AskSend& ask, Actions& actions, Counters& counters);

  // Copies queued small pieces into send buffers, as far as there are any.
  // `may_advertise`, here and below: SrcAvails are possible; if not, all goes as Data.
  void CopyWaiting(bool may_advertise, Actions& actions, Counters& counters);
  bool may_copy(bool may_advertise) const {  // else CopyWaiting has nothing to do
    return !pieces_.empty() && advertised_.empty() &&
           RouteOf(pieces_.front(), may_advertise) == SendRoute::kCopy;
  }

  bool writable() const {  // a small one would be copied at once
    return pieces_.empty() && advertised_.empty() && has_free_buffer();
  }
  void SetPayloadMax(uint32_t bytes) {
    limits_.payload_max = bytes;
    immediate_max_ = std::min(limits_.immediate_max, BufferRoom());
  }
  bool holds_copies() const { return !filled_.empty(); }

  // --- the wire. The caller asks NextPayload, calls the Take of that kind, and posts it. ---
  // `draining`: nothing will follow, so a partly filled buffer need not wait.
  Next NextPayload(bool draining, bool may_advertise) const {
    if (!remainders_.empty()) return Next::kRemainder;
    if (!filled_.empty()) {
      // A partly filled buffer waits for company while an earlier message is still on its way; that
      // one's completion sends it off. A queued piece here is one that cannot join the buffer.
      const bool may_leave = filled_.size() > 1 || filled_.front().bytes == BufferRoom() ||
                             filled_.front().urgent || unfinished_.empty() || !pieces_.empty() ||
                             draining;
      return may_leave ? Next::kCopied : Next::kNothing;
    }
    if (pieces_.empty()) return Next::kNothing;
    switch (RouteOf(pieces_.front(), may_advertise)) {
      case SendRoute::kCopy:
        return Next::kNothing;  // waits for a send buffer, or for the adverts before it
      case SendRoute::kGather:
        return advertised_.empty() ? Next::kGathered : Next::kNothing;
      case SendRoute::kAdvertise:
        return Next::kAdvert;
    }
    return Next::kNothing;
  }
  void TakeRemainder(Send& send);
  void TakeCopied(Send& send);
  bool TakeGathered(Send& send, bool may_advertise);  // true: the last send fills one more
  // The message of a Take, with this MSeq. Returns its user bytes.
  uint64_t OnPosted(uint32_t sequence, Counters& counters) {
    const uint64_t bytes = emitted_ - last_taken_.begin;
    unfinished_.PushBack() = last_taken_;
    unacknowledged_.PushBack() = {sequence, last_taken_.begin};
    counters.bytes_sent_copied += bytes;
    return bytes;
  }

  // The piece that kAdvert speaks of; it stays queued until TakeAdvert.
  OperationRange AdvertCandidate() const;
  void OnExposeFailed();  // the candidate goes as Data
  // The candidate is advertised, its first `inline_bytes` with the message. Returns the
  // operation's number.
  uint64_t TakeAdvert(const OperationRange& range, uint32_t inline_bytes, Send& send);
  // What became of the oldest advert: bytes that the peer has read; all of them; it wants the rest
  // sent.
  void OnAdvertRead(uint32_t bytes, Counters& counters);
  void OnAdvertComplete();
  void OnAdvertRefused();
  void OnAdvertsCancelled();  // what the next call brings back leaves as Data [15, rule 2]
  // No advert is outstanding any more: what was not read waits again, in order. Operations whose
  // cancel was asked end with it, if no byte has moved.
  void OnAdvertsRevoked(Actions& actions);
  void OnWithdrawn(uint64_t operation_number);  // one advert of it is out of the peer's reach

  // --- RDMA Write into memory that the peer has advertised ---
  // What of the queue's front may be written rather than sent; nothing, where copied bytes or a
  // remainder come first, or the application wants it copied.
  std::optional<OperationRange> Writable(bool may_advertise) const;
  void OnWriteStarted(uint32_t length, Counters& counters);  // of Writable()
  void OnWriteFinished();
  void OnWritesReported(uint32_t sequence);  // RdmaWrCompl was posted with this MSeq
  bool CopiedFit(uint32_t room) const;  // the copied bytes that leave next, into a SinkAvail [9]

  void OnPayloadFinished() {  // the oldest unfinished payload message has left
    if (const auto buffer = unfinished_.front().buffer) free_buffers_.push_back(*buffer);
    unfinished_.PopFront();
  }
  void OnAcknowledged(uint32_t sequence) {  // MSeqAck
    while (!unacknowledged_.empty() && AtOrAfter(sequence, unacknowledged_.front().sequence)) {
      unacknowledged_.PopFront();
    }
  }
  void OnAllDelivered();   // the connection ended in order
  void OnQueuePairLeft();  // for another one: what was posted has left and arrived [12]

  // --- urgent bytes. A Take that ends with one sets OOB_PRES. ---
  bool has_urgent() const { return !urgent_marks_.empty(); }
  // User bytes that no message has carried or advertised, up to and with the next urgent one.
  std::optional<uint64_t> UrgentAhead() const;
  bool CarriesNextUrgent(OperationId operation) const;
  void FinishReady(Counters& counters, Actions& actions) {  // what is done, in order
    if (dropped_ > 0) FinishDropped(actions);
    while (OldestIsReady()) FinishOldest(counters, actions);
  }
  // Whether anything that waits would be advertised, where we may.
  bool wants_advert() const { return wants_advert_ && has_pieces(); }
  void FinishAll(Outcome outcome, Actions& actions);  // the end: everything left
  // No byte is waiting to be emitted.
  bool drained() const { return pieces_.empty() && filled_.empty() && remainders_.empty(); }
  bool has_pieces() const { return !pieces_.empty(); }
  size_t waiting() const { return pieces_.size() + advertised_.size(); }  // not below LargeSends
  uint32_t LargeSends(bool may_advertise) const;  // waiting or advertised, counted up to a few
  bool empty() const { return operations_.empty(); }
  bool InvariantsHold() const {
    return emitted_ <= taken_ && taken_ <= asked_ && buffers_used_ <= limits_.send_buffers &&
           (advertised_.empty() || filled_.empty());
  }
  bool in_remainder() const { return !remainders_.empty(); }
  void AddTo(Digest& digest) const;

 private:
  uint32_t GatherRoomBeforeUrgent() const;
  void OnUrgentTaken(Send& send);
  void OnUrgentCancelled(const Operation& operation, uint64_t bytes);
  bool has_free_buffer() const {
    return !free_buffers_.empty() || buffers_used_ < limits_.send_buffers;
  }
  std::optional<SendBuffer> TakeBuffer();
  bool CopyPart(Piece& piece, Actions& actions, Counters& counters);
  void Gather(Send& send, Piece& piece, uint32_t& room);
  bool IsAdvertised(uint64_t number) const;
  bool HasUrgent(OperationId operation) const;
  void DropPieces(uint64_t number);
  void Drop(size_t index, Outcome outcome, Actions& actions);
  void EndShort(size_t index, Outcome outcome);
  void MoveEnd(size_t index, uint64_t end);
  void ResolveCancel(size_t index, Actions& actions);
  void FinishDropped(Actions& actions);
  void FinishOldest(Counters& counters, Actions& actions);
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_SEND_QUEUE_H_
