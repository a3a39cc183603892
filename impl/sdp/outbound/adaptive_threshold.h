#ifndef ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_
#define ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::sdp {

// Learns from which size on zero-copy is worth its round trip. What an operation costs is the time
// from its begin, or the end of the one before it if that is later, to its own end. Costs are kept
// for each power of two and path, with the older ones counting less and less. Now and then an
// operation goes the other way, so that both paths stay known. Deterministic; no clock.
class AdaptiveThreshold {
 public:
  static constexpr uint64_t kMin = 4 * 1024;  // bounds of the threshold
  static constexpr uint64_t kMax = 4 * 1024 * 1024;
  static constexpr uint32_t kProbeEvery = 32;  // operations of one size class

  AdaptiveThreshold() = default;
  AdaptiveThreshold(const AdaptiveThreshold& other) { *this = other; }
  AdaptiveThreshold& operator=(const AdaptiveThreshold& other);

  // Nothing learned yet: `initial` is in force from here on, held within the bounds.
  bool started() const { return state_ != nullptr; }
  void Start(uint64_t initial);
  uint64_t in_force() const { return started() ? state_->in_force : 0; }  // 0: not started

  // An operation begins; the threshold for it.
  uint64_t Begin(OperationId operation, uint64_t bytes, Time now);
  // An operation, perhaps one that was begun here, has ended.
  void End(OperationId operation, uint64_t bytes, uint64_t bytes_zero_copy, bool well, Time now);
  bool waits() const { return started() && !state_->begun.empty(); }  // for the end of one

  // An operation of so many bytes has cost so much.
  void Learn(uint64_t bytes, Duration cost, bool zero_copy);

  void AddTo(Digest& digest) const;

 private:
  static constexpr uint32_t kClassMin = 12;  // 4 KiB
  static constexpr uint32_t kClasses = 11;   // up to 8 MiB
  static constexpr uint32_t kSamplesMin = 2;

  struct Cost {
    int64_t ns = 0;  // of the class's smallest operation
    uint32_t samples = 0;
  };
  struct Class {
    Cost copied, zero_copy;
    uint32_t operations = 0;
  };
  struct Begun {
    OperationId operation{};
    Time at{};
  };

  static std::optional<uint32_t> ClassOf(uint64_t bytes);
  static void Add(Cost& cost, int64_t ns);

  struct State {
    uint64_t in_force = 0;
    std::array<Class, kClasses> classes{};
    GrowingRing<Begun> begun;
    Time last_end{};
  };

  std::unique_ptr<State> state_;  // a connection that learns nothing stays small
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_ADAPTIVE_THRESHOLD_H_
