#include "impl/fabric/local/shared_regions.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace esdp::fabric::local {

absl::Status SharedRegions::Add(RegionId id, const SharedFile& file, const std::byte* base,
                                uint64_t length) {
  const std::optional<uint64_t> bytes = SealedBytes(file.descriptor);
  if (!bytes || file.offset > *bytes || length > *bytes - file.offset) {
    return absl::InvalidArgumentError("the memory does not lie in a sealed file without a name");
  }
  SharedRegion region{.number = static_cast<uint64_t>(id),
                      .file = Descriptor(fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)),
                      .file_bytes = *bytes,
                      .base = base - file.offset};
  if (!region.file.is_open()) {
    return absl::ResourceExhaustedError("no descriptor for memory that is shared: " +
                                        std::string(std::strerror(errno)));
  }
  regions_.emplace(static_cast<uint64_t>(id), std::move(region));
  return absl::OkStatus();
}

bool SharedRegions::Remove(RegionId id) { return regions_.erase(static_cast<uint64_t>(id)) != 0; }

const SharedRegion* SharedRegions::Find(RegionId id) const {
  const auto found = regions_.find(static_cast<uint64_t>(id));
  return found == regions_.end() ? nullptr : &found->second;
}

}  // namespace esdp::fabric::local
