#include "impl/fabric/sim/region_table.h"

#include "impl/base/status.h"

namespace esdp::fabric::sim {
namespace {

// Whether [offset, offset + length) lies in [0, size), without ever adding beyond the end.
bool Inside(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

}  // namespace

absl::StatusOr<RegionId> RegionTable::Register(std::byte* base, uint64_t length, Access access) {
  ESDP_RETURN_IF_ERROR(CheckRange(base, length, UINT64_MAX));
  const RegionId id{++last_region_};
  Region region{{base, length, access}};
  if (region.HasRemoteRight()) {
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
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckUnused(region));
  if (region->key != 0) keys_.erase(region->key);
  registered_bytes_ -= region->length;
  regions_.erase(id);
  return absl::OkStatus();
}

absl::StatusOr<RemoteRange> RegionTable::RegionKey(RegionId id) const {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckRegionKey(region));
  return RemoteRange{region->key, keys_.at(region->key).first_address};
}

absl::StatusOr<RemoteRange> RegionTable::Bind(QueuePairId queue_pair, RegionId id,
                                              std::byte* address, uint64_t length, Access access) {
  ESDP_RETURN_IF_ERROR(CheckWindow(Find(id), address, length, access));
  const uint32_t key = DrawKey();
  keys_[key] = {.region = id,
                .queue_pair = queue_pair,
                .base = address,
                .length = length,
                .first_address = 0,
                .access = access};
  ++regions_.at(id).windows;
  ++windows_;
  return RemoteRange{key, 0};
}

bool RegionTable::IsWindowOf(QueuePairId queue_pair, uint32_t key) const {
  const auto found = keys_.find(key);
  return found != keys_.end() && found->second.queue_pair == queue_pair;
}

uint64_t RegionTable::Written(QueuePairId queue_pair, uint32_t key) const {
  return IsWindowOf(queue_pair, key) ? keys_.find(key)->second.written : kWrittenUnknown;
}

void RegionTable::NoteWritten(RemoteRange remote, uint64_t length) {
  Key& key = keys_.find(remote.key)->second;
  const uint64_t offset = remote.address - key.first_address;
  if (offset <= key.written) key.written = std::max(key.written, offset + length);
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
  return CheckEntry(Find(entry.region), entry, placing);
}

void RegionTable::Hold(absl::Span<const ScatterEntry> entries) {
  for (const ScatterEntry& entry : entries) ++regions_.at(entry.region).work;
}

void RegionTable::Release(absl::Span<const ScatterEntry> entries) {
  for (const ScatterEntry& entry : entries) --regions_.at(entry.region).work;
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
