#ifndef ESDP_IMPL_PROVIDER_PROGRESS_CPU_OVERSUBSCRIPTION_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_CPU_OVERSUBSCRIPTION_H_

#include <algorithm>
#include <atomic>
#include <chrono>

#include "impl/base/time.h"

namespace esdp::provider {

// Whether busy programs share the processors with the threads that look for work. A thread that
// steps aside between two looks then comes back only after each of them has had its turn, which may
// be tens of milliseconds later, while one that sleeps is let in as soon as it is woken.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   -
class CpuOversubscription {
 public:
  // A thread that has stepped aside at `left` runs again at `back`.
  void OnBack(Time left, Time back) {
    const Duration away = back - left;
    if (away <= kAway) return;
    until_.store(back + kShare * std::min(away, kAwayMost), std::memory_order_relaxed);
  }
  // Better sleep than look.
  bool Lasts(Time now) const { return now < until_.load(std::memory_order_relaxed); }

 private:
  // A peer or a progress thread on the same processor has done what it has to do sooner than that.
  static constexpr Duration kAway = std::chrono::milliseconds(1);
  // Another try costs as long again: a fiftieth of the time, no more.
  static constexpr int kShare = 50;
  // Longer than that the whole program stood still, which says nothing of what is now.
  static constexpr Duration kAwayMost = std::chrono::milliseconds(100);

  std::atomic<Time> until_{Time{}};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_CPU_OVERSUBSCRIPTION_H_
