#include "impl/fabric/sim/region_table.h"

namespace esdp::fabric::sim {
namespace {

// Whether [offset, offset + length) lies in [0, size), without ever adding beyond the end.
bool Inside(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

uint64_t Number(const std::byte* address) { return reinterpret_cast<uintptr_t>(address); }

absl::Status NoRegion() { return absl::NotFoundError("no region has this handle (any more)"); }

}  // namespace

absl::StatusOr<RegionId> RegionTable::Register(std::byte* base, uint64_t length, Access access) {
  if (base == nullptr || length == 0) {
    return absl::InvalidArgumentError("a registration needs an address and at least one byte");
  }
  if (length > UINT64_MAX - Number(base)) {
    return absl::OutOfRangeError("the registration wraps round the end of the address space");
  }
  const RegionId id{++last_region_};
  Region region{.base = base, .length = length, .access = access};
  if (access.remote_read || access.remote_write) {
    region.key = DrawKey();
    // Not 0, so that a caller who forgets to pass the key's own address on is found out.
    const uint64_t first_address = random_.Between(1, UINT32_MAX);
    keys_[region.key] = {.region = id,
                         .base = base,
                         .length = length,
                         .first_address = first_address,
                         .access = access};
  }
  regions_[id] = region;
  registered_bytes_ += length;
  return id;
}

absl::Status RegionTable::Deregister(RegionId id) {
  const auto found = regions_.find(id);
  if (found == regions_.end()) return NoRegion();
  if (found->second.posted != 0) {
    return absl::FailedPreconditionError(
        "posted work names the region: poll its completions first");
  }
  if (found->second.windows != 0) {
    return absl::FailedPreconditionError("a window is bound to the region: invalidate it first");
  }
  if (found->second.key != 0) keys_.erase(found->second.key);
  registered_bytes_ -= found->second.length;
  regions_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<RemoteRange> RegionTable::RegionKey(RegionId id) const {
  const auto found = regions_.find(id);
  if (found == regions_.end()) return NoRegion();
  if (found->second.key == 0) {
    return absl::FailedPreconditionError("the region was registered without a remote right");
  }
  return RemoteRange{found->second.key, keys_.at(found->second.key).first_address};
}

absl::StatusOr<RemoteRange> RegionTable::Bind(QueuePairId queue_pair, RegionId id,
                                              std::byte* address, uint64_t length, Access access) {
  const auto found = regions_.find(id);
  if (found == regions_.end()) return NoRegion();
  if (length == 0) return absl::InvalidArgumentError("a window needs at least one byte");
  Region& region = found->second;
  if (Number(address) < Number(region.base) ||
      !Inside(Number(address) - Number(region.base), length, region.length)) {
    return absl::OutOfRangeError("the window is not wholly inside its region");
  }
  if (access.remote_write && !region.access.local_write) {
    return absl::FailedPreconditionError("the region was registered without local_write");
  }
  const uint32_t key = DrawKey();
  keys_[key] = {.region = id,
                .queue_pair = queue_pair,
                .base = address,
                .length = length,
                .first_address = 0,
                .access = access};
  ++region.windows;
  ++windows_;
  return RemoteRange{key, 0};
}

bool RegionTable::IsWindowOf(QueuePairId queue_pair, uint32_t key) const {
  const auto found = keys_.find(key);
  return found != keys_.end() && found->second.queue_pair == queue_pair;
}

bool RegionTable::Withdraw(QueuePairId queue_pair, uint32_t key) {
  if (!IsWindowOf(queue_pair, key)) return false;
  const auto found = keys_.find(key);
  --regions_.at(found->second.region).windows;
  --windows_;
  keys_.erase(found);
  return true;
}

void RegionTable::WithdrawAll(QueuePairId queue_pair) {
  for (auto key = keys_.begin(); key != keys_.end();) {
    if (key->second.queue_pair != queue_pair) {
      ++key;
      continue;
    }
    --regions_.at(key->second.region).windows;
    --windows_;
    key = keys_.erase(key);
  }
}

absl::Status RegionTable::CheckLocal(const ScatterEntry& entry, bool placing) const {
  const auto found = regions_.find(entry.region);
  if (found == regions_.end()) return NoRegion();
  const Region& region = found->second;
  if (Number(entry.address) < Number(region.base) ||
      !Inside(Number(entry.address) - Number(region.base), entry.length, region.length)) {
    return absl::OutOfRangeError("an entry is not wholly inside its region");
  }
  if (placing && !region.access.local_write) {
    return absl::FailedPreconditionError("the region was registered without local_write");
  }
  return absl::OkStatus();
}

void RegionTable::Hold(absl::Span<const ScatterEntry> entries) {
  for (const ScatterEntry& entry : entries) ++regions_.at(entry.region).posted;
}

void RegionTable::Release(absl::Span<const ScatterEntry> entries) {
  for (const ScatterEntry& entry : entries) --regions_.at(entry.region).posted;
}

std::byte* RegionTable::Resolve(QueuePairId queue_pair, RemoteRange remote, uint64_t length,
                                Right right) const {
  const auto found = keys_.find(remote.key);
  if (found == keys_.end()) return nullptr;
  const Key& key = found->second;
  if (key.queue_pair != QueuePairId::kNone && key.queue_pair != queue_pair) return nullptr;
  if (!(right == Right::kRemoteRead ? key.access.remote_read : key.access.remote_write)) {
    return nullptr;
  }
  if (remote.address < key.first_address ||
      !Inside(remote.address - key.first_address, length, key.length)) {
    return nullptr;
  }
  return key.base + (remote.address - key.first_address);
}

uint32_t RegionTable::DrawKey() {
  uint32_t key = 0;
  while (key == 0 || keys_.contains(key)) key = static_cast<uint32_t>(random_.Next());
  return key;
}

}  // namespace esdp::fabric::sim
