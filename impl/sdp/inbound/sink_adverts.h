#ifndef ESDP_IMPL_SDP_INBOUND_SINK_ADVERTS_H_
#define ESDP_IMPL_SDP_INBOUND_SINK_ADVERTS_H_

#include <cstddef>
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

// Our SinkAvails: memory of receives that the peer may write to [8]. Each lives in these steps:
//
//   Offer      Expose is asked; the very next input is the answer
//   Post       SinkAvail is on its way: outstanding
//   the peer writes and says RdmaWrCompl, or a message with payload takes its place [8.2], or it is
//   dropped (SinkCancelAck, ModeChange, DisConn): Withdraw
//   Withdrawn  the memory is out of the peer's reach, and only then the receive may end
//
// The peer fills them in the order in which they were sent. The receives are the caller's: here
// they are numbers.
class SinkAdverts {
 public:
  // Adverts of this part have ids of their own range.
  static constexpr uint32_t kFirstId = 1u << 31;
  static bool Owns(AdvertId id) { return static_cast<uint32_t>(id) >= kFirstId; }

  // --- offering ---
  bool offering() const { return offer_.has_value(); }
  // [8.4] No new one between a SinkAvailCancel and its end.
  bool may_offer() const { return !offer_ && cancel_ == Cancel::kNone; }
  void Offer(const OperationRange& range, uint64_t operation_number, Actions& actions);
  // The answers. False: not to what was asked.
  bool OnExposed(const Exposed& answer);
  bool OnExposeFailed(AdvertId id);
  wire::SinkAvail Message() const;
  void OnPosted();

  size_t outstanding() const { return outstanding_.size(); }
  std::optional<uint32_t> oldest_key() const {
    return outstanding_.empty() ? std::nullopt : std::optional(outstanding_.front().remote.key);
  }
  bool idle() const { return !offer_ && outstanding_.empty() && cancel_ == Cancel::kNone; }
  // Each is larger than a receive buffer of so many bytes [8.1].
  bool Fit(uint32_t buffer_bytes) const;

  // --- what becomes of the oldest ---
  struct Taken {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    bool is_taken = false;            // false: nothing happened to any advert
    uint64_t operation_number = 0;
    uint32_t bytes = 0;
  };
  // [8.1] The oldest is complete, with fewer bytes than advertised or all. `invalidated_key` stands
  // in for our own withdrawal; it must be the key of this advert [25].
  // `written`: what the fabric knows to have been placed there.
  Taken OnRdmaWrCompl(uint32_t bytes, std::optional<uint32_t> invalidated_key, uint64_t written,
                      Actions& actions);
  // [8.2] A message brought `bytes` > 0 of payload: the oldest advert's memory takes them and no
  // others, or they count as NonDiscards when there is none.
  Taken OnPayload(uint32_t bytes, Actions& actions);
  void OnUnadvertisedPayload() { ++non_discards_; }  // the same, where none is outstanding

  // --- cancelling [8.4]; it is about all that are outstanding ---
  void AskCancel();
  bool cancel_owed() const { return cancel_ == Cancel::kOwed; }
  void OnCancelPosted(uint32_t sequence);
  // True: this is the answer; every advert that is left is dropped.
  bool OnSinkCancelAck(uint32_t acknowledged, Actions& actions);

  // [8.5] They vanish without a message: all that are outstanding are dropped.
  void DropAll(Actions& actions);
  // The connection is over: nothing is exposed any more.
  void OnLost();
  // [R8.5.1, R12.6] The queue pair is left with every key on it: all is as at the start.
  void OnQueuePairLeft() {
    OnLost();
    outstanding_.clear();
    leaving_.clear();
    non_discards_ = 0;
    cancel_ = Cancel::kNone;
    cancelled_ = false;
  }

  // The operation whose memory this gives back.
  std::optional<uint64_t> OnWithdrawn(AdvertId id) { return leaving_.OnWithdrawn(id); }

  uint32_t non_discards() const { return non_discards_; }
  bool InvariantsHold() const { return cancel_ == Cancel::kNone || !outstanding_.empty(); }
  void AddTo(Digest& digest) const;

 private:
  enum class Cancel : uint8_t { kNone, kOwed, kSent };
  struct Advert {
    AdvertId id{};
    OperationRange range;
    RemoteRange remote;
    uint64_t operation_number = 0;
  };

  void WithdrawOldest(bool already_invalidated, Actions& actions);

  uint32_t next_id_ = kFirstId;
  std::optional<Advert> offer_;
  GrowingRing<Advert> outstanding_;  // oldest first
  Withdrawals leaving_;
  uint32_t non_discards_ = 0;
  Cancel cancel_ = Cancel::kNone;
  uint32_t cancel_sequence_ = 0;
  bool cancelled_ = false;  // no advert was sent since the last cancel
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INBOUND_SINK_ADVERTS_H_
