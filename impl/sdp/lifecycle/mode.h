#ifndef ESDP_IMPL_SDP_LIFECYCLE_MODE_H_
#define ESDP_IMPL_SDP_LIFECYCLE_MODE_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The data delivery modes of both half-connections, and who may change them. Both start
// Combined [R5.1]. The master of a half switches when its ModeChange goes out, the slave when it
// arrives.
class Modes {
 public:
  Mode send() const { return send_; }        // of the half in which we are the source
  Mode receive() const { return receive_; }  // of the half in which we are the sink
  // What we may do in these modes.
  const ModePermits& permits() const { return Permits(send_, receive_); }

  // --- our changes ---
  // We have left Pipelined and the peer has not acknowledged it: no further change of ours may
  // leave, and SinkAvails are ignored (their headers are not) [R5.20, R5.21].
  bool frozen() const { return frozen_until_.has_value(); }
  // The message that takes the half to `to`; nothing if we may not order that, or not now.
  std::optional<wire::ModeChange> ChangeOfSend(Mode to) const;
  std::optional<wire::ModeChange> ChangeOfReceive(Mode to) const;
  // It went out with this MSeq.
  void OnPosted(const wire::ModeChange& change, uint32_t sequence);
  // The highest MSeqAck of the peer.
  void OnAcknowledged(uint32_t sequence) {
    if (frozen_until_ && AtOrAfter(sequence, *frozen_until_)) frozen_until_.reset();
  }

  // --- the peer's ---
  enum class Change : uint8_t { kNone, kSendRaised, kReceiveLowered, kReceiveRaised, kIllegal };
  // kNone: it named the current mode [17]. kReceiveLowered from Pipelined: our SinkAvails are void.
  Change OnModeChange(const wire::ModeChange& change);

  void AddTo(Digest& digest) const;

 private:
  Mode send_ = Mode::kCombined;
  Mode receive_ = Mode::kCombined;
  std::optional<uint32_t> frozen_until_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_MODE_H_
