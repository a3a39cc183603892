#ifndef ESDP_IMPL_SDP_OUTBOUND_SOURCE_ADVERTS_H_
#define ESDP_IMPL_SDP_OUTBOUND_SOURCE_ADVERTS_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/common/withdrawals.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// Our SrcAvails: memory of ours that the peer may read [7.1, 7.2, 7.4]. How many may be outstanding
// is the caller's business. Each lives in these steps:
//
//   Offer      Expose is asked; the very next input is the answer
//   Post       SrcAvail is on its way: outstanding
//   Processed  the peer has read it to the end or asked for the rest (SendSm), or it was revoked:
//              all at once, by the answer to a cancel or by a SinkAvail. Withdraw
//   Withdrawn  the memory is out of the peer's reach
class SourceAdverts {
 public:
  bool offering() const { return offering_; }
  bool outstanding() const { return !adverts_.empty(); }
  bool idle() const { return !offering_ && adverts_.empty(); }
  size_t count() const { return adverts_.size() + (offering_ ? 1u : 0u); }

  // Asks for exposure of `range`, whose first `inline_bytes` the SrcAvail will carry.
  void Offer(const OperationRange& range, uint32_t inline_bytes, Actions& actions);
  // The answers. False: not to what was asked.
  bool OnExposed(const Exposed& answer);
  bool OnExposeFailed(AdvertId id);

  const OperationRange& range() const { return offer_.range; }
  uint32_t inline_bytes() const { return offer_.inline_bytes; }
  wire::SrcAvail Message() const;
  // The SrcAvail went out with this MSeq.
  void OnPosted(uint64_t operation_number, uint32_t sequence);

  // What a message of the peer's led to. It speaks of the oldest advert, but for `revoked`.
  struct Progress {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    uint32_t bytes_read = 0;          // by this message
    bool complete = false;            // all of it was read
    bool refused = false;             // the rest is to be sent as Data, next
    bool revoked = false;             // no advert is left: what was not read was never advertised
  };
  // [7.1, step 4] `invalidated_key`: the Send invalidated this key, which stands in for our own
  // withdrawal; it must be the key of the advert that this completes [25].
  Progress OnRdmaRdCompl(uint32_t bytes, std::optional<uint32_t> invalidated_key, Actions& actions);
  // [7.2, 7.4] `acknowledged` is its MSeqAck. Ignored when none is outstanding.
  Progress OnSendSm(uint32_t acknowledged, Actions& actions);

  // --- SrcAvailCancel [7.4] ---
  // Wants everything outstanding back; nothing if there is nothing.
  void AskCancel();
  bool cancel_owed() const { return cancel_ == Cancel::kOwed; }
  void OnCancelPosted(uint32_t sequence);
  // No new SrcAvail may leave before the cancel is Processed.
  bool cancelling() const { return cancel_ != Cancel::kNone; }

  // [12] The queue pair is left with every key on it, and every advert is void. One of them, by the
  // number of its operation; nothing when that was the last.
  std::optional<uint64_t> OnQueuePairLeft();

  // [8.3, 5] Revokes everything outstanding: a live SinkAvail overrides it.
  void Override(Actions& actions) { RevokeAll(actions); }

  // The number of the operation that the advert was of, if it was one of ours.
  std::optional<uint64_t> OnWithdrawn(AdvertId id) { return leaving_.OnWithdrawn(id); }

  bool InvariantsHold() const { return outstanding() ? AdvertsHold() : !cancelling(); }
  void AddTo(Digest& digest) const;

 private:
  enum class Cancel : uint8_t { kNone, kOwed, kSent };
  struct Advert {
    AdvertId id{};
    OperationRange range;
    RemoteRange remote;
    uint32_t inline_bytes = 0;
    uint32_t acknowledged = 0;  // read by the peer, inline bytes not counted
    uint32_t sequence = 0;
    uint64_t operation_number = 0;
    uint32_t left() const { return range.length - inline_bytes - acknowledged; }
    void AddTo(Digest& digest) const;
  };

  bool AdvertsHold() const;
  const char* CheckCompletion(uint32_t bytes, std::optional<uint32_t> invalidated_key) const;
  // The oldest is Processed.
  void WithdrawOldest(bool already_invalidated, Actions& actions);
  void RevokeAll(Actions& actions);

  bool offering_ = false;
  Advert offer_;
  uint32_t next_id_ = 0;
  GrowingRing<Advert> adverts_;  // outstanding, oldest first
  Withdrawals leaving_;
  Cancel cancel_ = Cancel::kNone;
  uint32_t cancel_sequence_ = 0;
  bool revoked_last_ = false;  // and nothing was advertised since: a completion may have crossed
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_SOURCE_ADVERTS_H_
