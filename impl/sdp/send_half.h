#ifndef ESDP_IMPL_SDP_SEND_HALF_H_
#define ESDP_IMPL_SDP_SEND_HALF_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/action.h"
#include "impl/sdp/counters.h"
#include "impl/sdp/ids.h"
#include "impl/sdp/input.h"
#include "impl/sdp/policy.h"

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
class SendHalf {
 public:
  // What could leave next, if credits, slots and adverts allow.
  enum class Next : uint8_t { kNothing, kRemainder, kCopied, kGathered, kAdvert };

  struct Limits {
    uint32_t payload_max = 0;  // user bytes of one Data message
    uint32_t gather_max = 1;   // ranges of one message
    uint16_t send_buffers = 0;
    SendLimits policy;
  };
  void Start(const Limits& limits);

  // --- the application ---
  void Ask(const AskSend& ask);
  // Takes an operation that is too late; it ends with `outcome` when its turn comes.
  void AskRefused(const AskSend& ask, Outcome outcome);
  // kAdvertised: its adverts must be taken back, then OnAdvertsRevoked decides. kPartlyRead: so
  // that the rest goes as Data; it is too late for more.
  enum class CancelAnswer : uint8_t { kUnknown, kCancelled, kBegun, kAdvertised, kPartlyRead };
  CancelAnswer Cancel(const AskCancel& ask, Actions& actions);

  // Copies queued small pieces into send buffers, as far as there are any.
  void CopyWaiting(Actions& actions, Counters& counters);

  void SetPayloadMax(uint32_t bytes) { limits_.payload_max = bytes; }
  bool holds_copies() const { return !filled_.empty(); }
  void LetAdvertise(bool may) { limits_.policy.may_advertise = may; }  // if not, all goes as Data

  // --- the wire. The caller asks NextPayload, calls the Take of that kind, and posts it. ---
  // `draining`: nothing will follow, so a partly filled buffer need not wait.
  Next NextPayload(bool draining) const;
  void TakeRemainder(Send& send);
  void TakeCopied(Send& send);
  void TakeGathered(Send& send);
  void OnPosted(uint32_t sequence, Counters& counters);  // the message of a Take, with this MSeq

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
  [[nodiscard]] bool OnAdvertRefused();  // false: a cancel was to abort the connection now
  void OnAdvertsCancelled();  // what the next call brings back leaves as Data [15, rule 2]
  // No advert is outstanding any more: what was not read waits again, in order. Operations whose
  // cancel was asked end with it, if no byte has moved; else false: one was to abort now.
  [[nodiscard]] bool OnAdvertsRevoked(Actions& actions);
  void OnWithdrawn(uint64_t operation_number);  // one advert of it is out of the peer's reach

  // --- RDMA Write into memory that the peer has advertised (send_half_writes.cc) ---
  // What of the queue's front may be written rather than sent; nothing, where copied bytes or a
  // remainder come first, or the application wants it copied.
  std::optional<OperationRange> Writable() const;
  void OnWriteStarted(uint32_t length, Counters& counters);  // of Writable()
  void OnWriteFinished();                                    // the oldest
  void OnWritesReported(uint32_t sequence);  // RdmaWrCompl was posted with this MSeq
  bool CopiedFit(uint32_t room) const;  // the copied bytes that leave next, into a SinkAvail [9]

  void OnPayloadFinished();                // the oldest unfinished payload message has left
  void OnAcknowledged(uint32_t sequence);  // MSeqAck
  void OnAllDelivered();                   // the connection ended in order
  void OnQueuePairLeft();  // for another one: what was posted has left and arrived [12]
  uint64_t emitted() const { return emitted_; }
  // --- urgent bytes: send_half_urgent.cc. A Take that ends with one sets OOB_PRES. ---
  bool has_urgent() const { return !urgent_marks_.empty(); }
  // User bytes that no message has carried or advertised, up to and with the next urgent one.
  std::optional<uint64_t> UrgentAhead() const;
  bool CarriesNextUrgent(OperationId operation) const;
  void FinishReady(Counters& counters, Actions& actions);  // what is done, in order
  void FinishAll(Outcome outcome, Actions& actions);       // the end: everything left
  // No byte is waiting to be emitted.
  bool drained() const { return pieces_.empty() && filled_.empty() && remainders_.empty(); }
  bool has_pieces() const { return !pieces_.empty(); }
  size_t waiting() const { return pieces_.size() + advertised_.size(); }  // not below LargeSends
  uint32_t LargeSends() const;  // waiting or advertised, counted up to a few
  bool empty() const { return operations_.empty(); }
  bool Holds() const;
  bool in_remainder() const { return !remainders_.empty(); }
  void AddTo(Digest& digest) const;

 private:
  struct Operation {
    OperationId id{};
    bool open = false;      // more pieces follow
    bool finished = false;  // cancelled: its event is out, only the place is left
    bool dropped = false;   // cancelled: its event waits for its adverts to be withdrawn
    bool abort_if_begun = false;
    CompleteAt complete_at = CompleteAt::kReusable;
    Outcome outcome = Outcome::kDone;
    Outcome cancel = Outcome::kDone;  // what it ends with, if its adverts come back whole
    uint32_t exposures = 0;           // adverts that the peer may reach it by
    uint64_t begin = 0, end = 0;      // stream positions
    uint64_t uncopied_end = 0;        // end of its last byte that left from its own memory
    uint64_t zero_copy = 0;
  };
  struct Piece {
    OperationRange range;
    uint64_t number = 0;  // of the operation
    SendTraits traits;    // of the whole piece
    bool begun = false;   // its route is settled and is not kAdvertise
    bool refused_exposure = false;
    bool urgent = false;  // ends with an urgent byte
  };
  struct Advertised {
    Piece piece;  // what is left to be read
    uint32_t inline_bytes = 0;
  };
  struct Filled {
    SendBuffer buffer{};
    uint32_t bytes = 0;
    bool urgent = false;  // ends with an urgent byte: takes no more
  };
  struct Unfinished {
    uint64_t begin = 0;
    std::optional<SendBuffer> buffer;
  };
  struct UrgentMark {
    OperationId id{};
    uint64_t end = 0;  // stream position behind the urgent byte
  };
  struct Unacknowledged {
    uint32_t sequence = 0;
    uint64_t begin = 0;
  };

  SendRoute RouteOf(const Piece& piece) const;
  Operation& At(uint64_t number) { return operations_[number - first_number_]; }
  uint32_t GatherRoom() const;
  void OnUrgentTaken(Send& send);
  void OnUrgentCancelled(const Operation& operation);
  std::optional<SendBuffer> TakeBuffer();
  bool CopyPart(Piece& piece, Actions& actions, Counters& counters);
  void Gather(Send& send, Piece& piece, uint32_t& room);
  bool IsAdvertised(uint64_t number) const;
  bool HasUrgent(OperationId operation) const;
  void DropPieces(uint64_t number);
  void Drop(size_t index, Outcome outcome, Actions& actions);
  bool ResolveCancel(size_t index, Actions& actions);
  void FinishDropped(Actions& actions);
  uint64_t Released() const;   // below it no message of ours needs the memory
  uint64_t Delivered() const;  // below it the peer has the bytes
  void Finish(Operation& operation, uint64_t bytes, Outcome outcome, Actions& actions);
  uint32_t BufferRoom() const;

  Limits limits_;
  GrowingRing<Operation> operations_;
  uint64_t first_number_ = 0;  // of operations_[0]
  GrowingRing<Piece> pieces_;
  GrowingRing<Filled> filled_;          // the last may be partly filled
  GrowingRing<Advertised> advertised_;  // oldest first
  GrowingRing<Piece> remainders_;       // oldest first
  uint32_t dropped_ = 0;                // operations that are `dropped` and not `finished`
  GrowingRing<Unfinished> unfinished_;
  GrowingRing<Unacknowledged> unacknowledged_;
  GrowingRing<uint64_t> writes_;        // begins of the unfinished, in order
  std::optional<uint64_t> unreported_;  // begin of what was written without RdmaWrCompl yet

  std::vector<SendBuffer> free_buffers_;
  uint16_t buffers_used_ = 0;             // beyond it none was ever touched
  GrowingRing<UrgentMark> urgent_marks_;  // that have not left

  uint64_t asked_ = 0, taken_ = 0, emitted_ = 0;
  Unfinished last_taken_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_SEND_HALF_H_
