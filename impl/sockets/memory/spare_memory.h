#ifndef ESDP_IMPL_SOCKETS_MEMORY_SPARE_MEMORY_H_
#define ESDP_IMPL_SOCKETS_MEMORY_SPARE_MEMORY_H_

#include <cstddef>
#include <mutex>

#include "impl/base/spare_mappings.h"
#include "impl/sockets/memory/owned_memory.h"

namespace esdp::sockets {

// What streams that have ended leave for the next ones: where connections are short, memory that is
// mapped and touched anew costs each of them more than its data does.
//
//   Owns:     a few mappings that nobody uses; those that it has given belong to whom it gave them.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Take: null where the system has no memory.
class SpareMemory {
 public:
  // Beyond that what comes back is unmapped.
  static constexpr size_t kMappingsMax = 8;
  static constexpr size_t kBytesMax = size_t{4} << 20;

  // Small pages, at the beginning of one. Not cleared where a stream of this Context had it before.
  OwnedMemory Take(size_t bytes);
  // Nobody reads or writes it any more. Of what was not taken here nothing is kept.
  void Give(OwnedMemory memory);

 private:
  std::mutex mutex_;
  SpareMappings mappings_{kMappingsMax, kBytesMax};
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_SPARE_MEMORY_H_
