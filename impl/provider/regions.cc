#include "impl/provider/regions.h"

#include <algorithm>
#include <string>

#include "impl/base/status.h"

namespace esdp::provider {
namespace {

constexpr uint64_t kPageBytes = 4096;

// Chunks begin on page boundaries where the limit allows, so that no page is pinned twice.
uint64_t ChunkBytes(uint64_t region_bytes_max, uint64_t length) {
  if (region_bytes_max == 0 || region_bytes_max >= length) return std::max<uint64_t>(length, 1);
  return region_bytes_max < kPageBytes ? region_bytes_max
                                       : region_bytes_max / kPageBytes * kPageBytes;
}

// The remote rights of a registration are a standing door: only kRegionKey asks for it.
fabric::Access AccessOf(bool local_write, Exposure exposure) {
  const bool remote = exposure == Exposure::kRegionKey;
  return {.local_write = local_write, .remote_read = remote, .remote_write = remote && local_write};
}

absl::Status ChunkRefused(const absl::Status& cause, uint64_t length, size_t chunk, size_t chunks) {
  return MakeStatus(cause.code(), "registering " + std::to_string(length) + " bytes, part " +
                                      std::to_string(chunk + 1) + " of " + std::to_string(chunks) +
                                      ": " + std::string(FromAbsl(cause.message())));
}

}  // namespace

MemoryRegion::MemoryRegion(std::span<std::byte> memory, bool local_write, Exposure exposure)
    : base_(memory.data()),
      length_(memory.size()),
      local_write_(local_write),
      exposure_(exposure) {}

absl::StatusOr<std::shared_ptr<MemoryRegion>> MemoryRegion::Register(fabric::Fabric& fabric,
                                                                     std::span<std::byte> memory,
                                                                     bool local_write,
                                                                     Exposure exposure) {
  if (memory.data() == nullptr || memory.empty()) {
    return absl::InvalidArgumentError("a region needs at least one byte of memory");
  }
  const Time begin = fabric.Now();
  std::shared_ptr<MemoryRegion> region(new MemoryRegion(memory, local_write, exposure));
  region->chunk_bytes_ = ChunkBytes(fabric.limits().region_bytes_max, region->length_);
  const uint64_t chunks = (region->length_ - 1) / region->chunk_bytes_ + 1;
  for (uint64_t i = 0; i < chunks; ++i) {
    const uint64_t offset = i * region->chunk_bytes_;
    absl::StatusOr<fabric::RegionId> chunk = fabric.Register(
        region->base_ + offset, std::min(region->chunk_bytes_, region->length_ - offset),
        AccessOf(local_write, exposure));
    if (!chunk.ok()) {
      (void)region->Deregister(fabric);
      return ChunkRefused(chunk.status(), region->length_, i, chunks);
    }
    region->chunks_.push_back(*chunk);
  }
  region->chunk_count_ = static_cast<uint32_t>(chunks);
  region->registration_time_ = fabric.Now() - begin;
  return region;
}

absl::Status MemoryRegion::Deregister(fabric::Fabric& fabric) {
  if (const uint32_t users = operations(); users != 0) {
    return absl::FailedPreconditionError("the region is in use by " + std::to_string(users) +
                                         " operations: wait for their events or cancel them");
  }
  while (!chunks_.empty()) {
    ESDP_RETURN_IF_ERROR(fabric.Deregister(chunks_.back()));
    chunks_.pop_back();
  }
  return absl::OkStatus();
}

uint64_t MemoryRegion::ContiguousFrom(uint64_t offset, uint64_t length) const {
  return std::min(length, chunk_bytes_ - offset % chunk_bytes_);
}

fabric::ScatterEntry MemoryRegion::Entry(uint64_t offset, uint32_t length) const {
  return {chunks_[offset / chunk_bytes_], base_ + offset, length};
}

}  // namespace esdp::provider
