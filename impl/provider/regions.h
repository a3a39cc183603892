#ifndef ESDP_IMPL_PROVIDER_REGIONS_H_
#define ESDP_IMPL_PROVIDER_REGIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/time.h"
#include "impl/fabric/port.h"
#include "impl/provider/types.h"

namespace esdp::provider {

// The fabrics of a shard, in the order in which they are tried. A fabric is known by its place
// here.
using Fabrics = std::vector<fabric::Fabric*>;

// Memory that the application has registered: one registration with each fabric for each chunk of
// what all of them take at once.
//
//   Owns:     the registrations until Deregister; never the memory.
//   Threads:  the holder of the shard lock, but operations() from any thread. What Register fixed
//             may be read by all.
//   Blocks:   as long as the fabric's Register takes.
//   Units:    bytes.
//   Errors:   Register undoes what it did. An object that is dropped without Deregister leaves its
//             registrations to the end of the fabric.
class MemoryRegion {
 public:
  // `file`: which the memory is the whole mapping of; -1: none. It may be closed afterwards.
  static absl::StatusOr<std::shared_ptr<MemoryRegion>> Register(const Fabrics& fabrics,
                                                                std::span<std::byte> memory,
                                                                bool local_write, Exposure exposure,
                                                                int file = -1);
  // To send from. `addresses` are nothing but its names: the processor need not reach it.
  static absl::StatusOr<std::shared_ptr<MemoryRegion>> RegisterDmaBuf(
      const Fabrics& fabrics, const fabric::DmaBuf& buffer, std::span<std::byte> addresses,
      Exposure exposure);
  // Memory that no fabric knows, for receives that are copied: Name tells which, while no operation
  // uses it.
  static std::shared_ptr<MemoryRegion> Unregistered();
  void Name(std::span<std::byte> memory) {
    base_ = memory.data();
    length_ = memory.size();
  }
  // FailedPrecondition while operations use it; once it has succeeded the region holds nothing.
  absl::Status Deregister(const Fabrics& fabrics);

  std::byte* base() const { return base_; }
  uint64_t length() const { return length_; }
  Exposure exposure() const { return exposure_; }
  bool local_write() const { return local_write_; }
  // By the processor.
  bool reachable() const { return !buffer_.has_value(); }
  bool registered() const { return !chunks_.empty(); }
  uint32_t chunk_count() const { return chunk_count_; }
  Duration registration_time() const { return registration_time_; }

  // The operations that use it now.
  uint32_t operations() const { return operations_.load(std::memory_order_relaxed); }
  // Only the holder of the shard lock writes, so that it takes no atomic addition.
  void AddOperation() { operations_.store(operations() + 1, std::memory_order_relaxed); }
  void RemoveOperation() { operations_.store(operations() - 1, std::memory_order_relaxed); }

  bool Contains(uint64_t offset, uint64_t length) const {
    return (registered() || !known_) && offset <= length_ && length <= length_ - offset;
  }
  // How many of `length` bytes from `offset` on lie in one chunk. The range is inside the region.
  uint64_t ContiguousFrom(uint64_t offset, uint64_t length) const;
  // A range inside one chunk, as the fabric at this place knows it.
  fabric::ScatterEntry Entry(uint8_t place, uint64_t offset, uint32_t length) const;
  // Where the chunk of this offset begins.
  std::byte* ChunkBase(uint64_t offset) const { return base_ + ChunkOf(offset) * chunk_bytes_; }

 private:
  MemoryRegion(std::span<std::byte> memory, bool local_write, Exposure exposure);
  // Most have one chunk, and a division is slow.
  uint64_t ChunkOf(uint64_t offset) const { return chunk_count_ == 1 ? 0 : offset / chunk_bytes_; }
  absl::Status RegisterWith(const Fabrics& fabrics, int file);
  absl::Status RegisterChunks(fabric::Fabric& fabric, int file);

  std::byte* base_;
  uint64_t length_;
  bool local_write_;
  Exposure exposure_;
  std::optional<fabric::DmaBuf> buffer_;
  bool known_ = true;  // to the fabrics
  uint64_t chunk_bytes_ = 1;
  uint32_t chunk_count_ = 0;
  std::vector<fabric::RegionId> chunks_;  // those of one fabric behind those of another
  Duration registration_time_{};
  std::atomic<uint32_t> operations_{0};
};

// A range of a region, inside one chunk, as one fabric knows it.
struct ResolvedRange {
  MemoryRegion* region = nullptr;
  uint64_t offset = 0;  // from the region's first byte
  fabric::ScatterEntry entry;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_REGIONS_H_
