#include "impl/fabric/qpip/region_table.h"

#include <algorithm>
#include <vector>

namespace esdp::fabric::qpip {
namespace {

uint64_t AddressOf(const std::byte* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Compares as numbers: the pointers may belong to different objects.
bool Inside(const std::byte* base, uint64_t bytes, const std::byte* address, uint64_t length) {
  if (AddressOf(address) < AddressOf(base)) return false;
  const uint64_t offset = AddressOf(address) - AddressOf(base);
  return offset <= bytes && length <= bytes - offset;
}

absl::Status UnknownRegion() {
  return absl::NotFoundError("no such region: it was never registered here, or is deregistered");
}

}  // namespace

absl::StatusOr<RegionId> RegionTable::Register(std::byte* base, uint64_t length, Access access) {
  if (base == nullptr || length == 0) {
    return absl::InvalidArgumentError("a region needs an address and at least one byte");
  }
  if (length > kRegionBytesMax) {
    return absl::OutOfRangeError("the region is longer than limits().region_bytes_max");
  }
  if (AddressOf(base) + length < AddressOf(base)) {
    return absl::OutOfRangeError("the region wraps round the end of the address space");
  }
  Region region{.base = base, .length = length, .access = access};
  if (access.remote_read || access.remote_write) {
    const absl::StatusOr<uint32_t> key = DrawTag();
    if (!key.ok()) return key.status();
    region.key = *key;
  }
  const RegionId id{regions_.Insert(region)};
  if (id == RegionId::kNone) return absl::ResourceExhaustedError("no more regions");
  if (region.key != 0) {
    tags_[region.key] = Tag{.region = id,
                            .base = base,
                            .length = length,
                            .readable = access.remote_read,
                            .writable = access.remote_write};
  }
  return id;
}

absl::Status RegionTable::Deregister(RegionId id) {
  const Region* region = Find(id);
  if (region == nullptr) return UnknownRegion();
  if (region->windows != 0) {
    return absl::FailedPreconditionError("a window is bound to the region: withdraw it first");
  }
  if (region->work != 0) {
    return absl::FailedPreconditionError("posted work names the region: poll its completion first");
  }
  if (region->key != 0) Withdraw(region->key);
  regions_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::StatusOr<RemoteRange> RegionTable::RegionKey(RegionId id) const {
  const Region* region = Find(id);
  if (region == nullptr) return UnknownRegion();
  if (region->key == 0) {
    return absl::FailedPreconditionError("the region was registered without a remote right");
  }
  return RemoteRange{.key = region->key, .address = 0};
}

absl::Status RegionTable::CheckLocal(const ScatterEntry& entry, bool writes) const {
  const Region* region = Find(entry.region);
  if (region == nullptr) return UnknownRegion();
  if (!Inside(region->base, region->length, entry.address, entry.length)) {
    return absl::OutOfRangeError("an entry is not wholly inside its region");
  }
  if (writes && !region->access.local_write) {
    return absl::FailedPreconditionError("the region was registered without local_write");
  }
  return absl::OkStatus();
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
  if (region == nullptr) return UnknownRegion();
  if (length == 0) return absl::InvalidArgumentError("a window needs at least one byte");
  if (!Inside(region->base, region->length, address, length)) {
    return absl::OutOfRangeError("the window is not wholly inside its region");
  }
  if (access.remote_write && !region->access.local_write) {
    return absl::FailedPreconditionError("the region was registered without local_write");
  }
  const absl::StatusOr<uint32_t> key = DrawTag();
  if (!key.ok()) return key.status();
  tags_[*key] = Tag{.queue_pair = queue_pair,
                    .region = id,
                    .base = address,
                    .length = length,
                    .readable = access.remote_read,
                    .writable = access.remote_write};
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
  tags_.erase(key);
  withdrawn_[next_withdrawn_] = key;
  next_withdrawn_ = (next_withdrawn_ + 1) % kWithdrawnKept;
}

}  // namespace esdp::fabric::qpip
