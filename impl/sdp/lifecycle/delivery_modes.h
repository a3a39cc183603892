#ifndef ESDP_IMPL_SDP_LIFECYCLE_DELIVERY_MODES_H_
#define ESDP_IMPL_SDP_LIFECYCLE_DELIVERY_MODES_H_

#include <cstddef>
#include <cstdint>

#include "impl/base/digest.h"
#include "impl/sdp/flow/outgoing.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/lifecycle/mode.h"
#include "impl/sdp/lifecycle/mode_policy.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The delivery modes of both half-connections [5]: what they are, what is wished, and the
// ModeChanges that lead from the one to the other.
class DeliveryModes {
 public:
  // A queue pair is ready. Not `usable`: Combined for ever, towards a deployed peer or as one
  // [R19.1, R19.2, R19.3]; both sides decide it from what both have declared.
  void Start(bool usable, ModeWish send, ModeWish receive) {
    usable_ = usable;
    Want(send, receive);
  }
  void OnQueuePairLeft() { modes_ = Modes{}; }
  void Want(ModeWish send, ModeWish receive) { policy_.Want(send, receive); }

  bool usable() const { return usable_; }
  Mode send() const { return modes_.send(); }
  Mode receive() const { return modes_.receive(); }
  bool pipelined() const { return send() == Mode::kPipelined || receive() == Mode::kPipelined; }
  const ModePermits& permits() const { return modes_.permits(); }
  bool frozen() const { return modes_.frozen(); }
  bool wants_source_adverts() const { return policy_.wants_adverts(); }
  // [R5.14] SrcAvails that we must be able to hold at once.
  size_t SourceAdvertsHeldMax(size_t declared) const {
    return usable_ && permits().source_adverts_accepted == AdvertAllowance::kMany ? declared : 1;
  }
  // [R5.3] From so many large receives on REQ_PIPE is sent.
  uint32_t HintsFrom() const {
    return usable_ ? policy_.HintsFrom(modes_.receive()) : ModePolicy::kNever;
  }

  // --- the peer ---
  void OnAcknowledged(uint32_t sequence) { modes_.OnAcknowledged(sequence); }
  void OnHint() { policy_.OnHint(); }
  void OnAdvertRead() { policy_.OnRead(); }
  void OnAdvertRefused() { policy_.OnRefused(); }
  // `adverts_held`: the peer's SrcAvails that are not Processed.
  struct Answer {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    bool receive_lowered = false;     // from Pipelined: our SinkAvails are void
  };
  Answer OnModeChange(const wire::ModeChange& change, size_t adverts_held);

  // --- our changes ---
  // Nothing is to be said, with so many sends waiting or under way, large or not.
  bool Rests(size_t sends_max) const {
    return !usable_ || policy_.Rests(modes_.send(), modes_.receive(), sends_max);
  }
  // What a change depends on: it waits until nothing of the old mode is in process [R5.15, R5.17].
  struct Facts {
    bool may_send = true;     // our stream has not ended, and no SrcAvailCancel is under way
    bool may_receive = true;  // nor has the peer's
    uint32_t large_sends = 0;
    uint32_t large_receives = 0;
    bool source_adverts_out = false;
    bool writing = false;
  };
  // Sends what is due. True: our send half has left Pipelined.
  bool SendDue(const Facts& facts, Outgoing& outgoing, Actions& actions, Counters& counters);

  void AddTo(Digest& digest) const {
    modes_.AddTo(digest);
    policy_.AddTo(digest);
    digest.Add(usable_);
  }

 private:
  // The same as SendDue.
  bool Post(const wire::ModeChange& change, Outgoing& outgoing, Actions& actions,
            Counters& counters);

  Modes modes_;
  ModePolicy policy_;
  bool usable_ = false;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_DELIVERY_MODES_H_
