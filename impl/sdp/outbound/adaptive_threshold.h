#ifndef ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_
#define ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_

#include <cstdint>
#include <memory>

#include "impl/base/digest.h"
#include "impl/base/learned_threshold.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::sdp {

// Learns from which size on zero-copy is worth its round trip. What an operation costs is the time
// from its begin, or the end of the one before it if that is later, to its own end. Deterministic;
// no clock.
class AdaptiveThreshold {
 public:
  static constexpr uint64_t kMin = 4 * 1024;  // bounds of the threshold
  static constexpr uint64_t kMax = LearnedThreshold::kMax;

  AdaptiveThreshold() = default;
  AdaptiveThreshold(const AdaptiveThreshold& other) { *this = other; }
  AdaptiveThreshold& operator=(const AdaptiveThreshold& other);

  // Nothing learned yet: `initial` is in force from here on, held within the bounds.
  bool started() const { return state_ != nullptr; }
  void Start(uint64_t initial);
  uint64_t in_force() const {
    return started() ? state_->learned.in_force() : 0;
  }  // 0: not started

  // An operation begins; the threshold for it.
  uint64_t Begin(OperationId operation, uint64_t bytes, Time now);
  // An operation, perhaps one that was begun here, has ended.
  void End(OperationId operation, uint64_t bytes, uint64_t bytes_zero_copy, bool well, Time now);
  bool waits() const { return started() && !state_->begun.empty(); }  // for the end of one

  void AddTo(Digest& digest) const;

 private:
  struct Begun {
    OperationId operation{};
    Time at{};
  };
  struct State {
    explicit State(uint64_t initial) : learned(initial, kMin) {}
    LearnedThreshold learned;
    GrowingRing<Begun> begun;
    Time last_end{};
  };

  std::unique_ptr<State> state_;  // a connection that learns nothing stays small
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_
