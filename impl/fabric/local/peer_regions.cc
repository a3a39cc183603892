#include "impl/fabric/local/peer_regions.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"

namespace esdp::fabric::local {

// The one that was used last is most often the next: it stands in front.
std::optional<size_t> PeerRegions::IndexOf(uint64_t number) const {
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (regions_[i].number == number) return i;
  }
  return std::nullopt;
}

bool PeerRegions::Add(uint64_t number, uint64_t length, const Descriptor& file) {
  if (Has(number) || regions_.size() >= kRegionsMax) return false;
  Region region{.number = number, .mapping = {}, .resident = {}};
  const bool is_too_long = length > kBytesMax - bytes_;
  absl::StatusOr<Mapping> mapping = MapReadOnly(file, length, 0);
  if (absl::IsPermissionDenied(mapping.status())) return false;
  if (mapping.ok() && !is_too_long) {
    region.resident.resize((length + kStep - 1) / kStep);
    region.mapping = *std::move(mapping);
    bytes_ += length;
  }
  regions_.push_back(std::move(region));
  return true;
}

bool PeerRegions::Remove(uint64_t number) {
  const std::optional<size_t> index = IndexOf(number);
  if (!index) return false;
  bytes_ -= regions_[*index].mapping.length();
  regions_.erase(regions_.begin() + static_cast<ptrdiff_t>(*index));
  return true;
}

ConstBytes PeerRegions::Find(uint64_t number, uint64_t offset, uint64_t most) {
  const std::optional<size_t> index = IndexOf(number);
  if (!index) return {};
  if (*index != 0) std::swap(regions_[0], regions_[*index]);
  Region& region = regions_.front();
  const uint64_t length = region.mapping.length();
  if (offset >= length) return {};
  const uint64_t step = offset / kStep;
  const uint64_t end = std::min<uint64_t>((step + 1) * kStep, length);
  if (!region.resident[step]) {
    if (!MakeResident(region.mapping, step * kStep, end - step * kStep)) return {};
    region.resident[step] = true;
  }
  return {region.mapping.base() + offset, std::min(most, end - offset)};
}

}  // namespace esdp::fabric::local
