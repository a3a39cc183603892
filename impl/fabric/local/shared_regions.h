#ifndef ESDP_IMPL_FABRIC_LOCAL_SHARED_REGIONS_H_
#define ESDP_IMPL_FABRIC_LOCAL_SHARED_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "absl/status/status.h"
#include "impl/base/shared_memory.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::local {

// A region of ours that lies in a file, which can be passed to peers.
struct SharedRegion {
  uint64_t number = 0;  // among ours; never another one's
  Descriptor file{};
  uint64_t file_bytes = 0;
  const std::byte* base = nullptr;  // the file's first byte, as it is mapped here
};

// The regions of a fabric that lie in files.
//
//   Owns:     a descriptor of each.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Add: InvalidArgument for what MakeWritableMemory has not made, or a range outside it;
//             ResourceExhausted without a descriptor.
class SharedRegions {
 public:
  absl::Status Add(RegionId id, const SharedFile& file, const std::byte* base, uint64_t length);
  // False where there was none.
  bool Remove(RegionId id);
  const SharedRegion* Find(RegionId id) const;

 private:
  std::unordered_map<uint64_t, SharedRegion> regions_;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_SHARED_REGIONS_H_
