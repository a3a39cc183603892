#ifndef ESDP_IMPL_SOCKETS_MEMORY_REGION_ANCHOR_H_
#define ESDP_IMPL_SOCKETS_MEMORY_REGION_ANCHOR_H_

#include <atomic>
#include <cstdint>

namespace esdp::sockets {

class RegionState;

// Where the slices of a region find it, or that it is gone: its memory stays valid for as long as
// the program runs, and serves one region after the other.
//
//   Owns:     nothing.
//   Threads:  any. What Find answers is good as long as the caller knows that a handle or an
//             operation holds the region.
//   Blocks:   Take and Leave, for a lock of a few instructions.
//   Units:    –
//   Errors:   Take allocates where more regions live than ever before.
class RegionAnchor {
 public:
  // One that is free. `number`: of this region among those that it has served.
  static RegionAnchor* Take(RegionState* region, uint64_t* number);
  // The region goes.
  void Leave();
  // Null once that region is gone.
  RegionState* Find(uint64_t number) const {
    return number_.load(std::memory_order_acquire) == number
               ? region_.load(std::memory_order_relaxed)
               : nullptr;
  }

 private:
  RegionAnchor() = default;

  std::atomic<RegionState*> region_{nullptr};
  std::atomic<uint64_t> number_{0};
  RegionAnchor* next_free_ = nullptr;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_REGION_ANCHOR_H_
