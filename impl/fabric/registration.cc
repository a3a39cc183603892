#include "impl/fabric/registration.h"

namespace esdp::fabric {
namespace {

absl::Status NotWritable() {
  return absl::FailedPreconditionError("the region was registered without local_write");
}

}  // namespace

absl::Status UnknownRegion() {
  return absl::NotFoundError("no such region: it was never registered here, or is deregistered");
}

absl::Status CheckRange(const std::byte* base, uint64_t length, uint64_t length_max) {
  if (base == nullptr || length == 0) {
    return absl::InvalidArgumentError("a region needs an address and at least one byte");
  }
  if (length > length_max) {
    return absl::OutOfRangeError("the region is longer than limits().region_bytes_max");
  }
  if (length > UINT64_MAX - reinterpret_cast<uint64_t>(base)) {
    return absl::OutOfRangeError("the region wraps round the end of the address space");
  }
  return absl::OkStatus();
}

absl::Status CheckUnused(const Registration* region) {
  if (region == nullptr) return UnknownRegion();
  if (region->windows != 0) {
    return absl::FailedPreconditionError("a window is bound to the region: withdraw it first");
  }
  if (region->work != 0) {
    return absl::FailedPreconditionError("posted work names the region: poll its completion first");
  }
  return absl::OkStatus();
}

absl::Status CheckRegionKey(const Registration* region) {
  if (region == nullptr) return UnknownRegion();
  if (region->HasRemoteRight()) return absl::OkStatus();
  return absl::FailedPreconditionError("the region was registered without a remote right");
}

absl::Status CheckWindow(const Registration* region, const std::byte* address, uint64_t length,
                         Access access) {
  if (region == nullptr) return UnknownRegion();
  if (length == 0) return absl::InvalidArgumentError("a window needs at least one byte");
  if (!region->Contains(address, length)) {
    return absl::OutOfRangeError("the window is not wholly inside its region");
  }
  return access.remote_write && !region->access.local_write ? NotWritable() : absl::OkStatus();
}

absl::Status RefuseEntry(const Registration* region, const ScatterEntry& entry) {
  if (region == nullptr) return UnknownRegion();
  if (!region->Contains(entry.address, entry.length)) {
    return absl::OutOfRangeError("an entry is not wholly inside its region");
  }
  return NotWritable();
}

}  // namespace esdp::fabric
