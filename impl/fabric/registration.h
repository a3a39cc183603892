#ifndef ESDP_IMPL_FABRIC_REGISTRATION_H_
#define ESDP_IMPL_FABRIC_REGISTRATION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "impl/fabric/types.h"

// What every fabric knows of a registration, and the refusals of CONTRACT.md, M and W, that follow
// from it alone. Where one takes a pointer, null is a region that is not there.

namespace esdp::fabric {

struct Registration {
  std::byte* base = nullptr;
  uint64_t length = 0;
  Access access;
  uint64_t work = 0;     // posted, and not told of yet
  uint32_t windows = 0;  // bound to it

  bool HasRemoteRight() const { return access.remote_read || access.remote_write; }
  // Compares as numbers: the pointers may belong to different objects.
  bool Contains(const std::byte* address, uint64_t bytes) const {
    const uint64_t offset = reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(base);
    return offset <= length && bytes <= length - offset;
  }
};

absl::Status UnknownRegion();
// May so much memory be registered at all?
absl::Status CheckRange(const std::byte* base, uint64_t length, uint64_t length_max);
absl::Status CheckUnused(const Registration* region);
absl::Status CheckRegionKey(const Registration* region);
absl::Status CheckWindow(const Registration* region, const std::byte* address, uint64_t length,
                         Access access);

// Why an entry of local work is refused.
absl::Status RefuseEntry(const Registration* region, const ScatterEntry& entry);
inline absl::Status CheckEntry(const Registration* region, const ScatterEntry& entry, bool writes) {
  const bool is_good = region != nullptr && region->Contains(entry.address, entry.length) &&
                       (!writes || region->access.local_write);
  return is_good ? absl::OkStatus() : RefuseEntry(region, entry);
}

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_REGISTRATION_H_
