#include "impl/provider/transport/exposure.h"

#include "impl/provider/regions.h"

namespace esdp::provider {
namespace {

// They are counted up, and begin again behind the last one.
bool IsOlder(ExposureId a, ExposureId b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)) < 0;
}

}  // namespace

std::optional<fabric::RemoteRange> Exposures::Expose(fabric::Fabric& fabric, ExposureId id,
                                                     const ResolvedRange& range, PeerMay peer_may) {
  const bool write = peer_may == PeerMay::kWrite;
  if (range.region->exposure() == Exposure::kNone) return std::nullopt;
  if (write && !range.region->local_write()) return std::nullopt;
  const fabric::Access access{.local_write = write, .remote_read = !write, .remote_write = write};
  Entry entry;
  entry.id = id;
  std::optional<fabric::RemoteRange> shown;
  if (range.region->exposure() == Exposure::kRegionKey && !remote_invalidate_) {
    shown = ShowRegionKey(fabric, entry, range);
  } else if (fabric.limits().windows) {
    shown = ShowWindow(fabric, entry, range, access);
  } else {
    shown = ShowRegistration(fabric, entry, range, access);
  }
  if (!shown) return std::nullopt;
  if (entries_.capacity() == 0) entries_.reserve(kEntriesFirst);
  entries_.push_back(entry);
  return shown;
}

// [R25.5]
std::optional<fabric::RemoteRange> Exposures::ShowWindow(fabric::Fabric& fabric, Entry& entry,
                                                         const ResolvedRange& range,
                                                         fabric::Access access) {
  const absl::StatusOr<fabric::RemoteRange> window =
      fabric.Bind(queue_pair_, range.entry.region, range.entry.address, range.entry.length, access);
  if (!window.ok()) return std::nullopt;
  entry.means = Means::kWindow;
  entry.key = window->key;
  return *window;
}

std::optional<fabric::RemoteRange> Exposures::ShowRegistration(fabric::Fabric& fabric, Entry& entry,
                                                               const ResolvedRange& range,
                                                               fabric::Access access) {
  // By its addresses no part of a dma-buf can be registered: it is gathered instead.
  if (!range.region->reachable()) return std::nullopt;
  const absl::StatusOr<fabric::RegionId> registration =
      fabric.Register(range.entry.address, range.entry.length, access);
  if (!registration.ok()) return std::nullopt;
  const absl::StatusOr<fabric::RemoteRange> key = fabric.RegionKey(*registration);
  if (!key.ok()) {
    (void)fabric.Deregister(*registration);
    return std::nullopt;
  }
  entry.means = Means::kRegistration;
  entry.key = key->key;
  entry.registration = *registration;
  return *key;
}

std::optional<fabric::RemoteRange> Exposures::ShowRegionKey(fabric::Fabric& fabric, Entry& entry,
                                                            const ResolvedRange& range) {
  absl::StatusOr<fabric::RemoteRange> key = fabric.RegionKey(range.entry.region);
  if (!key.ok()) return std::nullopt;
  const std::byte* begin = range.region->ChunkBase(range.offset);
  key->address += static_cast<uint64_t>(range.entry.address - begin);
  entry.means = Means::kRegionKey;
  entry.key = key->key;
  return *key;
}

bool Exposures::Withdraw(fabric::Fabric& fabric, ExposureId id) {
  Entry* entry = Find(id);
  if (entry == nullptr) return false;
  if (entry->means == Means::kWindow) {
    entry->stage = Stage::kWaits;
    ++waiting_;
    return true;
  }
  if (entry->means == Means::kRegistration) (void)fabric.Deregister(entry->registration);
  Erase(*entry);
  return false;
}

std::optional<Exposures::Invalidation> Exposures::NextInvalidation() {
  if (waiting_ == 0 || posted_ >= invalidations_max_) return std::nullopt;
  Entry* oldest = nullptr;
  for (Entry& entry : entries_) {
    if (entry.stage != Stage::kWaits) continue;
    if (oldest == nullptr || IsOlder(entry.id, oldest->id)) oldest = &entry;
  }
  oldest->stage = Stage::kPosted;
  --waiting_;
  ++posted_;
  return Invalidation{oldest->id, oldest->key};
}

void Exposures::Withdrawn(ExposureId id) {
  if (Entry* entry = Find(id)) Erase(*entry);
}

void Exposures::Invalidated(uint32_t key) {
  for (Entry& entry : entries_) {
    if (entry.key != key || entry.means != Means::kWindow || entry.stage != Stage::kShown) continue;
    Erase(entry);
    return;
  }
}

void Exposures::ReleaseAll(fabric::Fabric& fabric, std::vector<ExposureId>& withdrawn) {
  for (const Entry& entry : entries_) {
    // NotFound: the peer had invalidated it, or the queue pair is gone with all its windows.
    if (entry.means == Means::kWindow) (void)fabric.Unbind(queue_pair_, entry.key);
    if (entry.means == Means::kRegistration) (void)fabric.Deregister(entry.registration);
    if (entry.stage != Stage::kShown) withdrawn.push_back(entry.id);
  }
  entries_.clear();
  waiting_ = posted_ = 0;
}

Exposures::Entry* Exposures::Find(ExposureId id) {
  for (Entry& entry : entries_) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

void Exposures::Erase(Entry& entry) {
  if (entry.stage == Stage::kWaits) --waiting_;
  if (entry.stage == Stage::kPosted) --posted_;
  entry = entries_.back();
  entries_.pop_back();
}

}  // namespace esdp::provider
