#include "impl/exs/memory_table.h"

#include <cerrno>
#include <utility>

#include "impl/exs/convert.h"

namespace esdp::exs {
namespace {

constexpr uint32_t kPlaceBits = 20;
constexpr uint32_t kPlacesMax = 1u << kPlaceBits;
constexpr uint32_t kGenerations = 1u << 11;  // of what is left of an int that is not negative

}  // namespace

MemoryTable::Entry* MemoryTable::At(exs_mhandle_t handle) {
  if (handle < 0) return nullptr;
  const uint32_t place = static_cast<uint32_t>(handle) % kPlacesMax;
  if (place >= entries_.size()) return nullptr;
  Entry& entry = entries_[place];
  const bool current = entry.generation == static_cast<uint32_t>(handle) >> kPlaceBits;
  return current && entry.region.valid() ? &entry : nullptr;
}

exs_mhandle_t MemoryTable::Add(Region region, const void* base, uint64_t length) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (entries_.size() == kPlacesMax) return EXS_MHANDLE_INVALID;
    free_.reserve(entries_.size() + 1);  // so that Remove allocates nothing
    entries_.emplace_back();
    free_.push_back(static_cast<uint32_t>(entries_.size() - 1));
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  Entry& entry = entries_[place];
  entry.region = std::move(region);
  entry.base = reinterpret_cast<uintptr_t>(base);
  entry.length = length;
  return static_cast<exs_mhandle_t>(entry.generation << kPlaceBits | place);
}

int MemoryTable::Find(exs_mhandle_t handle, const void* base, uint64_t length, Region* region,
                      Slice* slice) {
  uint64_t offset = 0;
  {
    const std::lock_guard lock(mutex_);
    const Entry* entry = At(handle);
    if (entry == nullptr) return EBADF;
    const auto address = reinterpret_cast<uintptr_t>(base);
    if (address < entry->base) return EFAULT;
    offset = address - entry->base;
    if (offset > entry->length || length > entry->length - offset) return EFAULT;
    *region = entry->region;
  }
  absl::StatusOr<Slice> made = region->slice(offset, length);
  if (!made.ok()) return EBADF;  // it was deregistered meanwhile
  *slice = *made;
  return 0;
}

int MemoryTable::Remove(exs_mhandle_t handle) {
  Region region;
  {
    const std::lock_guard lock(mutex_);
    const Entry* entry = At(handle);
    if (entry == nullptr) return EBADF;
    region = entry->region;
  }
  if (const absl::Status closed = region.Close(); !closed.ok()) return ErrnoOf(closed);
  const std::lock_guard lock(mutex_);
  Entry* entry = At(handle);
  if (entry == nullptr) return EBADF;
  entry->region = Region();
  entry->generation = (entry->generation + 1) % kGenerations;
  free_.push_back(static_cast<uint32_t>(handle) % kPlacesMax);
  return 0;
}

}  // namespace esdp::exs
