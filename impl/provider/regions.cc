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

absl::StatusOr<std::shared_ptr<MemoryRegion>> MemoryRegion::Register(const Fabrics& fabrics,
                                                                     std::span<std::byte> memory,
                                                                     bool local_write,
                                                                     Exposure exposure, int file) {
  if (memory.data() == nullptr || memory.empty()) {
    return absl::InvalidArgumentError("a region needs at least one byte of memory");
  }
  std::shared_ptr<MemoryRegion> region(new MemoryRegion(memory, local_write, exposure));
  ESDP_RETURN_IF_ERROR(region->RegisterWith(fabrics, file));
  return region;
}

absl::StatusOr<std::shared_ptr<MemoryRegion>> MemoryRegion::RegisterDmaBuf(
    const Fabrics& fabrics, const fabric::DmaBuf& buffer, std::span<std::byte> addresses,
    Exposure exposure) {
  std::shared_ptr<MemoryRegion> region(new MemoryRegion(addresses, false, exposure));
  region->buffer_ = buffer;
  ESDP_RETURN_IF_ERROR(region->RegisterWith(fabrics, -1));
  return region;
}

std::shared_ptr<MemoryRegion> MemoryRegion::Unregistered() {
  std::shared_ptr<MemoryRegion> region(new MemoryRegion({}, true, Exposure::kNone));
  region->known_ = false;
  region->chunk_bytes_ = ~uint64_t{0};
  region->chunk_count_ = 1;
  return region;
}

absl::Status MemoryRegion::RegisterWith(const Fabrics& fabrics, int file) {
  const Time begin = fabrics.front()->Now();
  chunk_bytes_ = length_;
  for (const fabric::Fabric* fabric : fabrics) {
    chunk_bytes_ = std::min(chunk_bytes_, ChunkBytes(fabric->limits().region_bytes_max, length_));
  }
  chunk_count_ = static_cast<uint32_t>((length_ - 1) / chunk_bytes_ + 1);
  for (fabric::Fabric* fabric : fabrics) {
    if (absl::Status status = RegisterChunks(*fabric, file); !status.ok()) {
      (void)Deregister(fabrics);
      return status;
    }
  }
  registration_time_ = fabrics.front()->Now() - begin;
  return absl::OkStatus();
}

absl::Status MemoryRegion::RegisterChunks(fabric::Fabric& fabric, int file) {
  for (uint32_t i = 0; i < chunk_count_; ++i) {
    const uint64_t offset = i * chunk_bytes_;
    const uint64_t length = std::min(chunk_bytes_, length_ - offset);
    const fabric::Access access = AccessOf(local_write_, exposure_);
    std::byte* const base = base_ + offset;
    absl::StatusOr<fabric::RegionId> chunk =
        buffer_
            ? fabric.RegisterDmaBuf({buffer_->fd, buffer_->offset + offset}, base, length, access)
        : file >= 0 ? fabric.RegisterShared({file, offset}, base, length, access)
                    : fabric.Register(base, length, access);
    if (!chunk.ok()) return ChunkRefused(chunk.status(), length_, i, chunk_count_);
    chunks_.push_back(*chunk);
  }
  return absl::OkStatus();
}

absl::Status MemoryRegion::Deregister(const Fabrics& fabrics) {
  if (const uint32_t users = operations(); users != 0) {
    return absl::FailedPreconditionError("the region is in use, by operations: " +
                                         std::to_string(users));
  }
  while (!chunks_.empty()) {
    fabric::Fabric* const last = fabrics[(chunks_.size() - 1) / chunk_count_];
    ESDP_RETURN_IF_ERROR(last->Deregister(chunks_.back()));
    chunks_.pop_back();
  }
  return absl::OkStatus();
}

uint64_t MemoryRegion::ContiguousFrom(uint64_t offset, uint64_t length) const {
  return std::min(length, chunk_bytes_ - (offset - ChunkOf(offset) * chunk_bytes_));
}

fabric::ScatterEntry MemoryRegion::Entry(uint8_t place, uint64_t offset, uint32_t length) const {
  if (!known_) return {fabric::RegionId::kNone, base_ + offset, length};
  return {chunks_[place * chunk_count_ + ChunkOf(offset)], base_ + offset, length};
}

}  // namespace esdp::provider
