#ifndef ESDP_IMPL_SDP_OUTBOUND_SEND_QUEUE_STATE_H_
#define ESDP_IMPL_SDP_OUTBOUND_SEND_QUEUE_STATE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/common/policy.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"

namespace esdp::sdp {

// What the outbound stream is made of (SendQueue), and the questions that each message asks of it.
class SendQueueState {
 public:
  struct Limits {
    uint32_t payload_max = 0;  // user bytes of one Data message
    uint32_t gather_max = 1;   // ranges of one message
    uint16_t send_buffers = 0;
    uint32_t immediate_max = 0;
    SendLimits policy;
  };

 protected:
  struct Operation {
    OperationId id{};
    bool open = false;        // more pieces follow
    bool finished = false;    // cancelled: its event is out, only the place is left
    bool dropped = false;     // cancelled: its event waits for its adverts to be withdrawn
    bool ends_short = false;  // cancelled: it ends behind what was read, once its adverts are back
    CompleteAt complete_at = CompleteAt::kReusable;
    Outcome outcome = Outcome::kDone;
    Outcome cancel = Outcome::kDone;  // what it ends with, if its adverts come back whole
    Time end_by = kTimeInfinite;      // of that
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
    bool urgent = false;        // ends with an urgent byte
    bool wants_advert = false;  // what follows from the above: kAdvertise, where we may
    SendRoute otherwise = SendRoute::kGather;
    void Begin() {
      begun = true;
      wants_advert = false;
    }
    void RefuseExposure() {
      refused_exposure = true;
      wants_advert = false;
    }
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

  static SendTraits TraitsOf(const AskSend& ask) {
    return {ask.piece.length, ask.zcopy_min, ask.path, ask.exposable, ask.copyable};
  }
  Operation& At(uint64_t number) { return operations_[number - first_number_]; }
  // Not `may_advertise`: everything goes as Data.
  static SendRoute RouteOf(const Piece& piece, bool may_advertise) {
    return piece.wants_advert && may_advertise ? SendRoute::kAdvertise : piece.otherwise;
  }
  // After a change of its range or traits, or of our limits.
  void Judge(Piece& piece) {
    const uint32_t exposable = piece.urgent ? piece.range.length - 1 : piece.range.length;
    piece.wants_advert = !piece.begun && !piece.refused_exposure &&
                         exposable >= kSourceAdvertBytesMin && WantsAdvert(piece.traits);
    if (piece.wants_advert) wants_advert_ = true;
    piece.otherwise = RouteOfCopied(piece.traits, limits_.policy);
  }
  uint32_t BufferRoom() const { return std::min(limits_.payload_max, kSendBufferBytes); }
  // Below it no message of ours needs the memory.
  uint64_t Released() const {
    const uint64_t sent = unfinished_.empty() ? emitted_ : unfinished_.front().begin;
    return writes_.empty() ? sent : std::min(sent, writes_.front());
  }
  // Below it the peer has the bytes.
  uint64_t Delivered() const {
    if (!unacknowledged_.empty()) return unacknowledged_.front().begin;
    return unreported_.value_or(emitted_);
  }
  static void Finish(const Operation& operation, uint64_t bytes, Outcome outcome,
                     Actions& actions) {
    FinishOperation& finish = Append<FinishOperation>(actions);
    finish.operation = operation.id;
    finish.outcome = outcome;
    finish.bytes = bytes;
    finish.bytes_zero_copy = std::min(operation.zero_copy, bytes);
    finish.stream_offset = operation.begin;
  }
  bool OldestIsReady() const {
    if (operations_.empty()) return false;
    const Operation& oldest = operations_.front();
    if (oldest.finished) return true;
    if (taken_ < oldest.end || oldest.open || oldest.exposures > 0) return false;  // [R25.6]
    if (Released() < oldest.uncopied_end) return false;
    return oldest.complete_at != CompleteAt::kDelivered || Delivered() >= oldest.end;
  }

  Limits limits_;
  uint32_t immediate_max_ = 0;  // and what a send buffer holds
  GrowingRing<Operation> operations_;
  uint64_t first_number_ = 0;  // of operations_[0]
  GrowingRing<Piece> pieces_;
  bool wants_advert_ = false;           // one of them may; surely not, where none did
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

#endif  // ESDP_IMPL_SDP_OUTBOUND_SEND_QUEUE_STATE_H_
