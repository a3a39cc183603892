#ifndef ESDP_IMPL_SDP_LIFECYCLE_MODE_POLICY_H_
#define ESDP_IMPL_SDP_LIFECYCLE_MODE_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/lifecycle/machines.h"

namespace esdp::sdp {

// Which data delivery mode is worth having. Decisions only, one legal step at a time; what is legal
// is Modes' business. With the automatic wish:
//
//   up    Combined to Pipelined when two large sends wait or the peer's REQ_PIPE asks;
//         Buffered to Combined, by the sink, when a large receive waits
//   down  Pipelined to Combined, and Combined to Buffered, when the peer has answered so many
//         adverts in a row with SendSm: each cost a round trip for nothing
class ModePolicy {
 public:
  static constexpr uint32_t kRefusalsToCombined = 2;
  static constexpr uint32_t kRefusalsToBuffered = 8;
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

  void Want(ModeWish send, ModeWish receive);

  // --- what the peer's answers say about our send half ---
  void OnHint();     // REQ_PIPE
  void OnRaised();   // the sink has ended Buffered: it is not asked for a second time
  void OnRefused();  // SendSm that was not the answer to a cancel
  void OnRead();     // an advert was read to its end

  // Whether to advertise at all where the mode allows it.
  bool wants_adverts() const { return send_ != ModeWish::kBuffered; }
  // The common case, cheap to tell: neither NextSend nor NextReceive has a change, with `sends_max`
  // sends waiting or under way, large or not.
  bool Rests(Mode send, Mode receive, size_t sends_max) const {
    return send == Mode::kCombined && receive != Mode::kBuffered && send_ == ModeWish::kAutomatic &&
           refusals_ == 0 && !hinted_ && sends_max < 2;
  }
  // The mode to change to now, if any. `large_sends`: waiting or under way.
  std::optional<Mode> NextSend(Mode now, uint32_t large_sends) const;
  // Of the half in which we are the sink. `large_receives`: posted and waiting.
  std::optional<Mode> NextReceive(Mode now, uint32_t large_receives) const;
  // From so many large receives on, posted and waiting, REQ_PIPE is set.
  uint32_t HintsFrom(Mode receive) const {
    return receive == Mode::kCombined ? hints_from_ : kNever;
  }

  void AddTo(Digest& digest) const;

 private:
  ModeWish Target(Mode now, uint32_t large_sends) const;

  ModeWish send_ = ModeWish::kAutomatic;
  ModeWish receive_ = ModeWish::kAutomatic;
  uint32_t hints_from_ = 2;  // what follows from receive_
  uint32_t refusals_ = 0;    // in a row
  bool hinted_ = false;
  bool raised_ = false;  // since the wish was told
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_MODE_POLICY_H_
