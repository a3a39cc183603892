#ifndef ESDP_IMPL_FABRIC_LOCAL_LOOK_PACING_H_
#define ESDP_IMPL_FABRIC_LOCAL_LOOK_PACING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace esdp::fabric::local {

// How much goes by between two looks at the descriptors, for a caller that polls without rest. A
// look is a system call and takes as long as ten polls or more: between two messages of a busy queue
// pair it would be most of the time. The interval doubles with each look in vain, and is short again
// once others than the busy ones have something, or none is busy.
//
//   Owns:     nothing.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    polls and completions, which take about as long.
//   Errors:   –
class LookPacing {
 public:
  static constexpr uint32_t kIntervalMin = 8;
  static constexpr uint32_t kIntervalMax = 256;
  static constexpr uint32_t kIntervalIdle = 16;

  // `moved`: a busy queue pair has.
  void OnPoll(bool moved) {
    ++passed_;
    vain_polls_ = moved ? 0 : vain_polls_ + 1;
  }
  void OnCompletions(size_t count) { passed_ += static_cast<uint32_t>(count); }
  bool IsTimeToLook() const {
    return passed_ >= (vain_polls_ < kIntervalMax ? interval_ : kIntervalIdle);
  }
  // The descriptors were looked at, and had something or had not.
  void OnLook(bool found) {
    passed_ = 0;
    interval_ = found ? kIntervalMin : std::min(2 * interval_, kIntervalMax);
  }

 private:
  uint32_t passed_ = 0;
  uint32_t vain_polls_ = 0;  // in a row
  uint32_t interval_ = kIntervalMin;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_LOOK_PACING_H_
