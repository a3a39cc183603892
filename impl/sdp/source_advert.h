#ifndef ESDP_IMPL_SDP_SOURCE_ADVERT_H_
#define ESDP_IMPL_SDP_SOURCE_ADVERT_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/action.h"
#include "impl/sdp/ids.h"
#include "impl/sdp/input.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// Our SrcAvail: memory of ours that the peer may read [7.1, 7.2]. Combined mode: one at a time. It
// lives in these steps:
//
//   Offer      Expose is asked; the very next input is the answer
//   Post       SrcAvail is on its way: outstanding
//   the peer reads it to the end, or asks for the rest (SendSm): Withdraw
//   Withdrawn  the memory is out of the peer's reach
class SourceAdvert {
 public:
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  bool offering() const { return state_ == State::kOffering; }
  bool outstanding() const { return state_ == State::kOutstanding; }
  bool idle() const { return state_ == State::kIdle; }

  // Asks for exposure of `range`.
  void Offer(const OperationRange& range, Actions& actions);
  // The answers. False: not to what was asked.
  bool OnExposed(const Exposed& answer);
  bool OnExposeFailed(AdvertId id);

  const OperationRange& range() const { return range_; }
  wire::SrcAvail Message() const;
  // The SrcAvail went out; the advert starts at this stream position.
  void OnPosted(uint64_t operation_number, uint64_t stream_begin);

  // What a message of the peer's led to.
  struct Progress {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    uint64_t operation_number = 0;
    uint32_t bytes_read = 0;                  // by this message
    bool complete = false;                    // all of it was read
    std::optional<OperationRange> remainder;  // to be sent as Data, next
  };
  // [7.1, step 4] `invalidated_key`: the Send invalidated this key, which stands in for our own
  // withdrawal; it must be the key of the advert that this completes [25].
  Progress OnRdmaRdCompl(uint32_t bytes, std::optional<uint32_t> invalidated_key, Actions& actions);
  // [7.2] Ignored when none is outstanding.
  Progress OnSendSm(Actions& actions);

  void OnWithdrawn(AdvertId id);

  // The stream position from which on memory is exposed, kNowhere if none is.
  uint64_t HeldFrom() const;

  bool Holds() const;
  void AddTo(Digest& digest) const;

 private:
  enum class State : uint8_t { kIdle, kOffering, kOutstanding };
  struct Leaving {
    AdvertId id{};
    uint64_t begin = 0;
    bool withdrawn = false;
  };

  void WithdrawNow(bool already_invalidated, Actions& actions);

  State state_ = State::kIdle;
  AdvertId id_{};
  uint32_t next_id_ = 0;
  OperationRange range_;
  RemoteRange remote_;
  uint32_t acknowledged_ = 0;  // read by the peer, inline bytes not counted
  uint64_t operation_number_ = 0;
  uint64_t begin_ = 0;
  GrowingRing<Leaving> leaving_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_SOURCE_ADVERT_H_
