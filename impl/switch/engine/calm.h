#ifndef ESDP_IMPL_SWITCH_ENGINE_CALM_H_
#define ESDP_IMPL_SWITCH_ENGINE_CALM_H_

#include <atomic>
#include <cstdint>

namespace esdp::switching {

// Whether connections have come to rest: none is made or closed for some waits of the program's.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never.
//   Units:    waits.
//   Errors:   –
class Calm {
 public:
  void Disturb() { waits_.store(0, std::memory_order_relaxed); }
  // A wait begins; `at_rest`: nothing is under way.
  bool After(bool at_rest) {
    if (waits_.load(std::memory_order_relaxed) >= kWaits) return true;
    if (at_rest) waits_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

 private:
  static constexpr uint32_t kWaits = 8;
  std::atomic<uint32_t> waits_{0};
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_CALM_H_
