#include "impl/base/clock.h"

#include <chrono>

namespace esdp {

Time Clock::FromWall(absl::Time deadline) const {
  if (deadline == absl::InfiniteFuture()) return kTimeInfinite;
  const absl::Duration left = deadline - WallNow();
  if (left <= absl::ZeroDuration()) return Now();
  // Rounds up, so that nothing ends before its deadline; saturates by itself at Duration's limits.
  return AddSaturating(Now(), absl::ToChronoNanoseconds(absl::Ceil(left, absl::Nanoseconds(1))));
}

Time SystemClock::Now() const {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

absl::Time SystemClock::WallNow() const {
  return absl::FromChrono(std::chrono::system_clock::now());
}

}  // namespace esdp
