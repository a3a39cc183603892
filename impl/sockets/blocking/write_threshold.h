#ifndef ESDP_IMPL_SOCKETS_BLOCKING_WRITE_THRESHOLD_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_WRITE_THRESHOLD_H_

#include <cstdint>
#include <optional>

#include "impl/base/learned_threshold.h"
#include "impl/base/time.h"

namespace esdp::sockets {

// From which size on the Writes of a blocking stream go zero-copy: learned from what they cost,
// registration included. A copied one costs until its bytes have left the send buffer, which nobody
// waits for as a rule: only now and then one is measured.
//
//   Owns:     nothing.
//   Threads:  who has the turn.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   –
class WriteThreshold {
 public:
  // Less is copied: it costs less than a registration.
  static constexpr uint64_t kMin = 64 * 1024;
  static constexpr uint32_t kMeasureEvery = 16;  // copied Writes

  struct Plan {
    bool zero_copy = false;
    bool measured = false;
    bool probes = false;  // the other way than its size says
  };

  uint64_t in_force(uint64_t initial) const { return learned_ ? learned_->in_force() : initial; }
  // A Write of so many bytes begins; `initial` is in force until something has been learned.
  Plan Begin(uint64_t bytes, uint64_t initial) {
    if (bytes < kMin || !LearnedThreshold::Covers(bytes)) {
      return {.zero_copy = bytes >= in_force(initial)};
    }
    if (!learned_) learned_.emplace(initial, kMin);
    const bool by_size = bytes >= learned_->in_force();
    Plan plan{.zero_copy = bytes >= learned_->Begin(bytes)};
    plan.probes = plan.zero_copy != by_size;
    plan.measured = plan.zero_copy || plan.probes || copied_++ % kMeasureEvery == 0;
    return plan;
  }
  // One that is measured has gone as planned.
  void End(uint64_t bytes, const Plan& plan, Duration cost) {
    learned_->Learn(bytes, cost, plan.zero_copy);
  }

 private:
  std::optional<LearnedThreshold> learned_;
  uint32_t copied_ = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_WRITE_THRESHOLD_H_
