#ifndef ESDP_IMPL_PROVIDER_SETUP_PATIENCE_H_
#define ESDP_IMPL_PROVIDER_SETUP_PATIENCE_H_

#include <algorithm>
#include <chrono>

#include "impl/base/time.h"
#include "impl/fabric/types.h"

namespace esdp::provider {

// Until when an attempt to connect may take that has to be over at `deadline`. A device of RoCE
// reaches peers that have none, and nobody there answers: so one that is not the last has three
// seconds, and at most half of what is left.
inline Time EndOfAttempt(Time deadline, bool is_last, const fabric::Limits& limits, Time now) {
  constexpr Duration kPatience = std::chrono::seconds(3);
  if (is_last || limits.of_this_host) return deadline;
  const Duration left = deadline == kTimeInfinite ? kDurationInfinite : deadline - now;
  return now + std::min(kPatience, std::max(left / 2, Duration{0}));
}

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SETUP_PATIENCE_H_
