#ifndef ESDP_IMPL_PROVIDER_PROGRESS_CPU_SHARING_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_CPU_SHARING_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "impl/base/time.h"

namespace esdp::provider {

// Whether what a thread waits for is made by one that runs on the same processor, as a peer on a
// machine of one processor is. Then it cannot be there before that one has run, and the first look
// is in vain: better step aside at once.
//
//   Owns:     nothing.
//   Threads:  any; what several do at a time may be counted wrong.
//   Blocks:   never.
//   Units:    waits.
//   Errors:   -
class CpuSharing {
 public:
  // Whether a wait that begins steps aside before it looks. It looks first now and then, to see
  // whether that finds something by now.
  bool StepsAsideFirst() {
    if (paid_.load(std::memory_order_relaxed) < kWaitsBefore) return false;
    const uint32_t turn = turn_.load(std::memory_order_relaxed) + 1;
    turn_.store(turn, std::memory_order_relaxed);
    return turn % kWaitsBetweenTries != 0;
  }
  // A thread that has stepped aside was away for so long. True: another one has run meanwhile.
  bool OnBack(Duration away) {
    if (away >= kSomebodyRan) return true;
    paid_.store(0, std::memory_order_relaxed);
    return false;
  }
  // A wait has found something: by the first look after another thread has run, or otherwise.
  void OnFound(bool somebody_ran) {
    const uint32_t paid = paid_.load(std::memory_order_relaxed);
    const uint32_t now = somebody_ran ? std::min(paid + 1, kWaitsBefore) : 0;
    if (now != paid) paid_.store(now, std::memory_order_relaxed);
  }

 private:
  // To step aside for nobody takes a system call and no more.
  static constexpr Duration kSomebodyRan = std::chrono::microseconds(3);
  static constexpr uint32_t kWaitsBefore = 4;
  static constexpr uint32_t kWaitsBetweenTries = 64;

  std::atomic<uint32_t> paid_{0};  // waits in a row in which it would have been right
  std::atomic<uint32_t> turn_{0};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_CPU_SHARING_H_
