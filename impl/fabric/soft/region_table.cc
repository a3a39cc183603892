#include "impl/fabric/soft/region_table.h"

#include <algorithm>
#include <vector>

#include "impl/base/status.h"

namespace esdp::fabric::soft {

absl::StatusOr<RegionId> RegionTable::Register(std::byte* base, uint64_t length, Access access) {
  ESDP_RETURN_IF_ERROR(CheckRange(base, length, kRegionBytesMax));
  Region region{{base, length, access}};
  if (region.HasRemoteRight()) {
    const absl::StatusOr<uint32_t> key = DrawTag();
    if (!key.ok()) return key.status();
    region.key = *key;
  }
  const uint64_t first_address = region.key != 0 ? keys_->FirstAddress() : 0;
  tags_.Reserve(tags_.size() + 1);  // so that nothing fails behind the Insert
  const RegionId id{regions_.Insert(region)};
  if (id == RegionId::kNone) return absl::ResourceExhaustedError("no more regions");
  registered_bytes_ += length;
  if (region.key != 0) {
    tags_.Set(region.key, Tag{.region = id,
                              .base = base,
                              .length = length,
                              .first_address = first_address,
                              .rights = RightsOf(access)});
    ++region_keys_;
  }
  return id;
}

absl::Status RegionTable::Deregister(RegionId id) {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckUnused(region));
  if (region->key != 0) {
    Withdraw(region->key);
    --region_keys_;
  }
  registered_bytes_ -= region->length;
  regions_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::StatusOr<RemoteRange> RegionTable::RegionKey(RegionId id) const {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckRegionKey(region));
  return RemoteRange{.key = region->key, .address = tags_.find(region->key)->second.first_address};
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
                      .rights = RightsOf(access)});
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

const RegionTable::Tag* RegionTable::FindWindow(QueuePairId queue_pair, uint32_t key) const {
  const auto found = tags_.find(key);
  if (found == tags_.end() || found->second.queue_pair != queue_pair) return nullptr;
  return &found->second;
}

bool RegionTable::IsWindow(QueuePairId queue_pair, uint32_t key) const {
  return FindWindow(queue_pair, key) != nullptr;
}

uint64_t RegionTable::Written(QueuePairId queue_pair, uint32_t key) const {
  const Tag* const window = FindWindow(queue_pair, key);
  return window == nullptr ? kWrittenUnknown : window->written;
}

void RegionTable::NoteWritten(uint32_t key, uint64_t address, uint64_t length) {
  const auto found = tags_.find(key);
  if (found == tags_.end()) return;
  Tag& tag = found->second;
  const uint64_t offset = address - tag.first_address;
  if (offset <= tag.written) tag.written = std::max(tag.written, offset + length);
}

void RegionTable::InvalidateAll(QueuePairId queue_pair) {
  std::vector<uint32_t> keys;
  for (const auto& [key, tag] : tags_) {
    if (tag.queue_pair == queue_pair) keys.push_back(key);
  }
  for (const uint32_t key : keys) Invalidate(queue_pair, key);
}

absl::StatusOr<uint32_t> RegionTable::DrawTag() {
  while (true) {
    const std::optional<uint32_t> tag = keys_->Draw();
    if (!tag) return absl::UnavailableError("the system has no random numbers for keys");
    if (*tag != 0 && !tags_.contains(*tag) && !WasWithdrawn(*tag)) return *tag;
  }
}

uint8_t RegionTable::RightsOf(Access access) {
  unsigned rights = 0;
  if (access.remote_read) rights |= static_cast<unsigned>(TagRight::kRead);
  if (access.remote_write) rights |= static_cast<unsigned>(TagRight::kWrite);
  return static_cast<uint8_t>(rights);
}

bool RegionTable::WasWithdrawn(uint32_t key) const {
  bool found =
      false;  // hardly ever: not to leave early lets the compiler compare several at a time
  for (const uint32_t one : withdrawn_) found |= one == key;
  return found;
}

void RegionTable::Withdraw(uint32_t key) {
  tags_.Erase(key);
  withdrawn_[next_withdrawn_] = key;
  next_withdrawn_ = (next_withdrawn_ + 1) % kWithdrawnKept;
}

}  // namespace esdp::fabric::soft
