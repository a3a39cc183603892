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
// from its begin, or the end of the one before it if that is later, to its own end: of a row that
// all went one way, once the way shows what it costs. Round trips overlap as soon as as many are on
// their way as the application has outstanding; what is copied seems to cost nothing until the
// peer's private buffers are full. Deterministic; no clock.
class AdaptiveThreshold {
 public:
  static constexpr uint64_t kMin = 4 * 1024;  // bounds of the threshold
  static constexpr uint64_t kMax = LearnedThreshold::kMax;

  AdaptiveThreshold() = default;
  AdaptiveThreshold(const AdaptiveThreshold& other) { *this = other; }
  AdaptiveThreshold& operator=(const AdaptiveThreshold& other);

  // What the peer has to receive messages in.
  struct PeerBuffers {
    uint32_t count = 0;
    uint32_t bytes = 1;
  };

  // Nothing learned yet: `initial` is in force from here on, held within the bounds.
  bool started() const { return state_ != nullptr; }
  void Start(uint64_t initial, const PeerBuffers& peer);
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
  // Those that ended one after the other, all one way.
  struct Row {
    bool zero_copy = false;
    uint32_t ended = 0;
    // Of these the ones that show what the way costs, of one size class.
    uint32_t counted = 0;
    uint64_t bytes = 0;
    Duration cost{};
  };
  struct State {
    State(uint64_t initial, const PeerBuffers& buffers) : learned(initial, kMin), peer(buffers) {}
    // How many of that size have to go one way before the way shows what it costs.
    uint32_t Settling(uint64_t bytes, bool zero_copy) const;
    LearnedThreshold::Rows RowsOf(uint64_t bytes) const;
    void Count(uint64_t bytes, Duration cost);

    LearnedThreshold learned;
    PeerBuffers peer;
    GrowingRing<Begun> begun;
    Time last_end{};
    Row row;
    // The most that were outstanding, of late and before that.
    uint32_t depth = 1;
    uint32_t depth_before = 1;
  };

  std::unique_ptr<State> state_;  // a connection that learns nothing stays small
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_
