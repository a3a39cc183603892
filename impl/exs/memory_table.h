#ifndef ESDP_IMPL_EXS_MEMORY_TABLE_H_
#define ESDP_IMPL_EXS_MEMORY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "esdp/region.h"
#include "sys/exs.h"

namespace esdp::exs {

// A MemoryTable gives registered memory its handles: a place in the table, and a generation in the
// high bits, so that an old handle is not taken for a new one.
//
//   Owns:     the regions.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   an errno, 0 for none.
class MemoryTable {
 public:
  // EXS_MHANDLE_INVALID when every handle is taken.
  exs_mhandle_t Add(Region region, const void* base, uint64_t length);
  // EBADF for a handle that is none; EFAULT where the range leaves the memory.
  int Find(exs_mhandle_t handle, const void* base, uint64_t length, Region* region, Slice* slice);
  // EBUSY while an operation uses it.
  int Remove(exs_mhandle_t handle);

 private:
  struct Entry {
    Region region;
    uintptr_t base = 0;
    uint64_t length = 0;
    uint32_t generation = 0;
  };
  Entry* At(exs_mhandle_t handle);

  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_MEMORY_TABLE_H_
