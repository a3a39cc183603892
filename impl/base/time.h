#ifndef ESDP_IMPL_BASE_TIME_H_
#define ESDP_IMPL_BASE_TIME_H_

#include <chrono>

// Instants and spans as plain values. Nothing here reads a clock: time is handed in from outside,
// so that the protocol core and the simulator decide what time it is. Clock, in clock.h, is the
// only door to the system's.

namespace esdp {

// The tag makes an instant of ours a type of its own: it cannot be mixed up with a system clock's.
struct MonotonicTag {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicTag, duration>;
  static constexpr bool is_steady = true;
};

using Duration = std::chrono::nanoseconds;
using Time = MonotonicTag::time_point;  // nanoseconds since an epoch that only its Clock knows

inline constexpr Time kTimeInfinite = Time::max();  // "never"
inline constexpr Duration kDurationInfinite = Duration::max();

// Saturates instead of overflowing, so that "now plus for ever" is for ever.
constexpr Time AddSaturating(Time time, Duration duration) {
  if (duration >= kTimeInfinite - time) return kTimeInfinite;
  return time + duration;
}

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_TIME_H_
