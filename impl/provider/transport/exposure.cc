#include "impl/provider/transport/exposure.h"

#include "impl/provider/regions.h"

namespace esdp::provider {

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

std::optional<uint32_t> Exposures::Withdraw(fabric::Fabric& fabric, ExposureId id) {
  Entry* entry = Find(id);
  if (entry == nullptr) return std::nullopt;
  if (entry->means == Means::kWindow) {
    entry->withdrawing = true;
    return entry->key;
  }
  if (entry->means == Means::kRegistration) (void)fabric.Deregister(entry->registration);
  Erase(*entry);
  return std::nullopt;
}

void Exposures::Withdrawn(ExposureId id) {
  if (Entry* entry = Find(id)) Erase(*entry);
}

void Exposures::Invalidated(uint32_t key) {
  for (Entry& entry : entries_) {
    if (entry.key != key || entry.means != Means::kWindow || entry.withdrawing) continue;
    Erase(entry);
    return;
  }
}

void Exposures::ReleaseAll(fabric::Fabric& fabric, std::vector<ExposureId>& withdrawn) {
  for (const Entry& entry : entries_) {
    // NotFound: the peer had invalidated it, or the queue pair is gone with all its windows.
    if (entry.means == Means::kWindow) (void)fabric.Unbind(queue_pair_, entry.key);
    if (entry.means == Means::kRegistration) (void)fabric.Deregister(entry.registration);
    if (entry.withdrawing) withdrawn.push_back(entry.id);
  }
  entries_.clear();
}

Exposures::Entry* Exposures::Find(ExposureId id) {
  for (Entry& entry : entries_) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

void Exposures::Erase(Entry& entry) {
  entry = entries_.back();
  entries_.pop_back();
}

}  // namespace esdp::provider
