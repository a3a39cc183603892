#ifndef ESDP_IMPL_PROVIDER_RESIDUE_H_
#define ESDP_IMPL_PROVIDER_RESIDUE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "impl/base/time.h"

namespace esdp::provider {

// What connections leave behind that have ended, and when it is to be given back. Some of it serves
// those that come next; what more of them used goes back to the system when they have ended for a
// while, for all of them together, since that takes time.
//
//   Threads:  the holder of the shard lock.
//   Units:    connections; one has some 40 KiB of the heap beside its private buffers, of which few
//             stay mapped when it has ended (SpareMappings).
class Residue {
 public:
  static constexpr Duration kAfter = std::chrono::seconds(1);

  explicit Residue(uint32_t spare_max) : spare_max_(spare_max) {}

  // So many were there at once.
  void NoteMost(size_t connections) { most_ = std::max(most_, connections); }
  // Of those that were there at once, more than may be spared are not there any more.
  bool IsTooMuch(size_t connections) const { return most_ > connections + spare_max_; }
  // All but these has been given back.
  void OnGivenBack(size_t connections) { most_ = connections; }

  // Returns the process's free memory to the system, as far as its allocator can.
  static void ReturnFreeMemory();

 private:
  const size_t spare_max_;
  size_t most_ = 0;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_RESIDUE_H_
