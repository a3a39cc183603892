#include "impl/provider/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace esdp::provider {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kSendStride = BufferPool::kHeaderSlotBytes + BufferPool::kSendBufferBytes;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

std::byte* Map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // One huge page would commit at the first touch what a quiet connection never needs. Advice may
  // be refused.
  (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(memory);
}

absl::Status MappingFailed(size_t bytes, int error) {
  return absl::ResourceExhaustedError(
      "no memory for the " + std::to_string(bytes) +
      " bytes of a connection's private buffers: " + std::generic_category().message(error));
}

}  // namespace

BufferPool::~BufferPool() {
  for (const Block& block : blocks_) {
    if (block.own_mapping) munmap(block.base, BytesOf(block));
  }
  if (base_ != nullptr) munmap(base_, bytes_);
}

absl::Status BufferPool::Open(fabric::Fabric& fabric, const Shape& shape) {
  shape_ = shape;
  // Neighbouring buffers of different cache lines: the fabric may fill one while we read another.
  Block& block = blocks_[0];
  block.stride = RoundUp(shape.receive_buffer_bytes, kCacheLine);
  block.buffer_bytes = shape.receive_buffer_bytes;
  bytes_ =
      shape.header_slots * kHeaderSlotBytes + shape.send_buffers * kSendStride + BytesOf(block);
  base_ = Map(bytes_);
  if (base_ == nullptr) return MappingFailed(bytes_, errno);
  block.base = base_ + bytes_ - BytesOf(block);
  block_of_.assign(shape.receive_buffers, kNowhere);
  absl::StatusOr<fabric::RegionId> region =
      fabric.Register(base_, bytes_, fabric::Access{.local_write = true});
  if (!region.ok()) return region.status();
  region_ = block.region = *region;
  return absl::OkStatus();
}

absl::Status BufferPool::Close(fabric::Fabric& fabric) {
  for (Block& block : blocks_) {
    if (absl::Status status = Release(fabric, block); !status.ok()) return status;
  }
  if (region_ == fabric::RegionId::kNone) return absl::OkStatus();
  absl::Status status = fabric.Deregister(region_);
  if (status.ok()) region_ = fabric::RegionId::kNone;
  return status;
}

absl::Status BufferPool::Release(fabric::Fabric& fabric, Block& block) {
  if (!block.own_mapping) return absl::OkStatus();
  if (absl::Status status = fabric.Deregister(block.region); !status.ok()) return status;
  munmap(block.base, BytesOf(block));
  block = Block{};
  return absl::OkStatus();
}

absl::Status BufferPool::Grow(fabric::Fabric& fabric, uint32_t receive_buffer_bytes) {
  if (receive_buffer_bytes <= blocks_[newest_].buffer_bytes) return absl::OkStatus();
  const auto next = static_cast<uint8_t>(1 - newest_);
  if (blocks_[next].in_use > 0) {
    return absl::FailedPreconditionError("receive buffers of the size before are still in use");
  }
  if (absl::Status status = Release(fabric, blocks_[next]); !status.ok()) return status;
  Block block;
  block.stride = RoundUp(receive_buffer_bytes, kCacheLine);
  block.buffer_bytes = receive_buffer_bytes;
  block.base = Map(BytesOf(block));
  if (block.base == nullptr) return MappingFailed(BytesOf(block), errno);
  absl::StatusOr<fabric::RegionId> region =
      fabric.Register(block.base, BytesOf(block), fabric::Access{.local_write = true});
  if (!region.ok()) {
    munmap(block.base, BytesOf(block));
    return region.status();
  }
  block.region = *region;
  block.own_mapping = true;
  blocks_[next] = block;
  newest_ = next;
  return absl::OkStatus();
}

fabric::ScatterEntry BufferPool::PostEntry(uint32_t buffer, uint32_t bytes) {
  uint8_t& place = block_of_[buffer];
  if (place != newest_) {
    if (place != kNowhere && --blocks_[place].in_use == 0) {
      // Nobody looks at these pages any more: the system may have them back.
      (void)madvise(blocks_[place].base, BytesOf(blocks_[place]), MADV_DONTNEED);
    }
    place = newest_;
    ++blocks_[place].in_use;
  }
  const Bytes memory = ReceiveBuffer(buffer);
  return {blocks_[place].region, memory.data(),
          static_cast<uint32_t>(std::min<size_t>(bytes, memory.size()))};
}

Bytes BufferPool::HeaderSlot(uint64_t index) const {
  return Bytes(base_ + (index % shape_.header_slots) * kHeaderSlotBytes, kHeaderSlotBytes);
}

Bytes BufferPool::SendBuffer(uint32_t buffer) const {
  return Bytes(
      base_ + shape_.header_slots * kHeaderSlotBytes + buffer * kSendStride + kHeaderSlotBytes,
      kSendBufferBytes);
}

Bytes BufferPool::ReceiveBuffer(uint32_t buffer) const {
  const uint8_t place = block_of_[buffer];
  const Block& block = blocks_[place == kNowhere ? newest_ : place];
  return Bytes(block.base + buffer * block.stride, block.buffer_bytes);
}

fabric::ScatterEntry BufferPool::Entry(Bytes part) const {
  return {region_, part.data(), static_cast<uint32_t>(part.size())};
}

}  // namespace esdp::provider
