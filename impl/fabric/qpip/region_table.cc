#include "impl/fabric/qpip/region_table.h"

#include <algorithm>
#include <vector>

#include "impl/base/status.h"

namespace esdp::fabric::qpip {

absl::StatusOr<RegionId> RegionTable::Register(std::byte* base, uint64_t length, Access access) {
  ESDP_RETURN_IF_ERROR(CheckRange(base, length, kRegionBytesMax));
  Region region{{base, length, access}};
  if (region.HasRemoteRight()) {
    const absl::StatusOr<uint32_t> key = DrawTag();
    if (!key.ok()) return key.status();
    region.key = *key;
  }
  const RegionId id{regions_.Insert(region)};
  if (id == RegionId::kNone) return absl::ResourceExhaustedError("no more regions");
  if (region.key != 0) {
    tags_.Set(region.key, Tag{.region = id,
                              .base = base,
                              .length = length,
                              .readable = access.remote_read,
                              .writable = access.remote_write});
  }
  return id;
}

absl::Status RegionTable::Deregister(RegionId id) {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckUnused(region));
  if (region->key != 0) Withdraw(region->key);
  regions_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::StatusOr<RemoteRange> RegionTable::RegionKey(RegionId id) const {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckRegionKey(region));
  return RemoteRange{.key = region->key, .address = 0};
}

absl::Status RegionTable::CheckLocal(const ScatterEntry& entry, bool writes) const {
  return CheckEntry(Find(entry.region), entry, writes);
}

void RegionTable::Hold(RegionId id) {
  if (Region* region = Find(id); region != nullptr) ++region->work;
}

void RegionTable::Release(RegionId id) {
  if (Region* region = Find(id); region != nullptr) --region->work;
}

absl::StatusOr<RemoteRange> RegionTable::Bind(QueuePairId queue_pair, RegionId id,
                                              std::byte* address, uint64_t length, Access access) {
  Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckWindow(region, address, length, access));
  const absl::StatusOr<uint32_t> key = DrawTag();
  if (!key.ok()) return key.status();
  tags_.Set(*key, Tag{.queue_pair = queue_pair,
                      .region = id,
                      .base = address,
                      .length = length,
                      .readable = access.remote_read,
                      .writable = access.remote_write});
  ++region->windows;
  return RemoteRange{.key = *key, .address = 0};
}

TagError RegionTable::Invalidate(QueuePairId queue_pair, uint32_t key) {
  const auto found = tags_.find(key);
  if (found == tags_.end()) return TagError::kInvalid;
  const Tag& tag = found->second;
  if (tag.queue_pair == QueuePairId::kNone) return TagError::kRights;
  if (tag.queue_pair != queue_pair) return TagError::kOtherStream;
  if (Region* region = Find(tag.region); region != nullptr) --region->windows;
  Withdraw(key);
  return TagError::kNone;
}

bool RegionTable::IsWindow(QueuePairId queue_pair, uint32_t key) const {
  const auto found = tags_.find(key);
  return found != tags_.end() && found->second.queue_pair == queue_pair;
}

uint64_t RegionTable::Written(QueuePairId queue_pair, uint32_t key) const {
  return IsWindow(queue_pair, key) ? tags_.find(key)->second.written : kWrittenUnknown;
}

void RegionTable::NoteWritten(uint32_t key, uint64_t offset, uint64_t length) {
  const auto found = tags_.find(key);
  if (found == tags_.end() || offset > found->second.written) return;
  found->second.written = std::max(found->second.written, offset + length);
}

void RegionTable::InvalidateAll(QueuePairId queue_pair) {
  std::vector<uint32_t> keys;
  for (const auto& [key, tag] : tags_) {
    if (tag.queue_pair == queue_pair) keys.push_back(key);
  }
  for (const uint32_t key : keys) Invalidate(queue_pair, key);
}

TagAccess RegionTable::Resolve(QueuePairId queue_pair, uint32_t key, uint64_t offset,
                               uint64_t length, TagRight right) const {
  const auto found = tags_.find(key);
  if (found == tags_.end()) return {TagError::kInvalid, nullptr};
  const Tag& tag = found->second;
  if (tag.queue_pair != QueuePairId::kNone && tag.queue_pair != queue_pair) {
    return {TagError::kOtherStream, nullptr};
  }
  if (!(right == TagRight::kRead ? tag.readable : tag.writable))
    return {TagError::kRights, nullptr};
  if (offset + length < offset) return {TagError::kWraps, nullptr};
  if (offset + length > tag.length) return {TagError::kBounds, nullptr};
  return {TagError::kNone, tag.base + offset};
}

absl::StatusOr<uint32_t> RegionTable::DrawTag() {
  while (true) {
    const std::optional<uint32_t> tag = random_.Next32();
    if (!tag) return absl::UnavailableError("the system has no random numbers for steering tags");
    if (*tag != 0 && !tags_.contains(*tag) && !WasWithdrawn(*tag)) return *tag;
  }
}

bool RegionTable::WasWithdrawn(uint32_t key) const {
  return std::find(withdrawn_.begin(), withdrawn_.end(), key) != withdrawn_.end();
}

void RegionTable::Withdraw(uint32_t key) {
  tags_.Erase(key);
  withdrawn_[next_withdrawn_] = key;
  next_withdrawn_ = (next_withdrawn_ + 1) % kWithdrawnKept;
}

}  // namespace esdp::fabric::qpip
