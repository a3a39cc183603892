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
// Three sources feed messages, in this order: the remainder of an advert that the peer asked to be
// sent (SendSm), copied bytes in send buffers, queued pieces.
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
  enum class CancelAnswer : uint8_t { kUnknown, kCancelled, kBegun };
  CancelAnswer Cancel(OperationId operation, Outcome outcome, Actions& actions);

  // Copies queued small pieces into send buffers, as far as there are any.
  void CopyWaiting(Actions& actions, Counters& counters);

  // --- the wire. The caller asks NextPayload, calls the Take of that kind, and posts it. ---
  // `draining`: nothing will follow, so a partly filled buffer need not wait.
  Next NextPayload(bool draining) const;
  void TakeRemainder(Send& send);
  void TakeCopied(Send& send);
  void TakeGathered(Send& send);
  // After the message of a Take was posted with this MSeq.
  void OnPosted(uint32_t sequence, Counters& counters);

  // The piece that kAdvert speaks of; it stays queued until TakeAdvert.
  OperationRange AdvertCandidate() const;
  void OnExposeFailed();  // the candidate goes as Data
  // The candidate is advertised: fills the inline bytes. Returns the operation's number.
  uint64_t TakeAdvert(const OperationRange& range, Send& send);
  // Outcome of the advert: bytes that the peer has read; what it wants sent instead.
  void OnAdvertRead(uint64_t operation_number, uint32_t bytes, Counters& counters);
  void OnAdvertComplete(uint64_t operation_number, uint32_t inline_bytes);
  void OnRemainder(uint64_t operation_number, const OperationRange& range);

  void OnPayloadFinished();                // the oldest unfinished payload message has left
  void OnAcknowledged(uint32_t sequence);  // MSeqAck
  void OnAllDelivered();                   // the connection ended in order
  uint64_t emitted() const { return emitted_; }

  // --- urgent bytes: send_half_urgent.cc. A Take that ends with one sets OOB_PRES. ---
  bool has_urgent() const { return !urgent_marks_.empty(); }
  // User bytes that no message has carried or advertised, up to and with the next urgent one.
  std::optional<uint64_t> UrgentAhead() const;
  bool CarriesNextUrgent(OperationId operation) const;

  // Finishes what is done, in order. Memory from stream position `held_from` on is exposed.
  void FinishReady(uint64_t held_from, Counters& counters, Actions& actions);
  // The end: everything left ends with `outcome`.
  void FinishAll(Outcome outcome, Actions& actions);

  // No byte is waiting to be emitted.
  bool drained() const { return pieces_.empty() && filled_.empty() && !remainder_; }
  bool has_pieces() const { return !pieces_.empty(); }
  bool empty() const { return operations_.empty(); }

  bool Holds() const {
    return emitted_ <= taken_ && taken_ <= asked_ && buffers_used_ <= limits_.send_buffers;
  }
  bool in_remainder() const { return remainder_.has_value(); }
  void AddTo(Digest& digest) const;

 private:
  struct Operation {
    OperationId id{};
    bool open = false;      // more pieces follow
    bool finished = false;  // cancelled: its event is out, only the place is left
    CompleteAt complete_at = CompleteAt::kReusable;
    Outcome outcome = Outcome::kDone;
    uint64_t begin = 0, end = 0;  // stream positions
    uint64_t uncopied_end = 0;    // end of its last byte that left from its own memory
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
  uint64_t Released(uint64_t held_from) const;  // below it memory is out of everyone's reach
  uint64_t Delivered() const;                   // below it the peer has the bytes
  void Finish(Operation& operation, uint64_t bytes, Outcome outcome, Actions& actions);
  uint32_t BufferRoom() const;

  Limits limits_;
  GrowingRing<Operation> operations_;
  uint64_t first_number_ = 0;  // of operations_[0]
  GrowingRing<Piece> pieces_;
  GrowingRing<Filled> filled_;  // the last may be partly filled
  std::optional<Piece> remainder_;
  GrowingRing<Unfinished> unfinished_;
  GrowingRing<Unacknowledged> unacknowledged_;

  std::vector<SendBuffer> free_buffers_;
  uint16_t buffers_used_ = 0;             // beyond it none was ever touched
  GrowingRing<UrgentMark> urgent_marks_;  // that have not left

  uint64_t asked_ = 0, taken_ = 0, emitted_ = 0;
  Unfinished last_taken_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_SEND_HALF_H_
