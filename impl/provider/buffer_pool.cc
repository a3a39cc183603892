#include "impl/provider/buffer_pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace esdp::provider {
namespace {

constexpr size_t kCacheLine = 64;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

absl::Status MappingFailed(size_t bytes, int error) {
  return absl::ResourceExhaustedError(
      "no memory for the " + std::to_string(bytes) +
      " bytes of a connection's private buffers: " + std::generic_category().message(error));
}

}  // namespace

BufferPool::~BufferPool() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

absl::Status BufferPool::Open(fabric::Fabric& fabric, const Shape& shape) {
  shape_ = shape;
  // Neighbouring buffers of different cache lines: the fabric may fill one while we read another.
  receive_stride_ = RoundUp(shape.receive_buffer_bytes, kCacheLine);
  bytes_ = shape.header_slots * kHeaderSlotBytes + size_t{shape.send_buffers} * kSendBufferBytes +
           shape.receive_buffers * receive_stride_;
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return MappingFailed(bytes_, errno);
  base_ = static_cast<std::byte*>(memory);
  // One huge page would commit at the first touch what a quiet connection never needs. Advice may
  // be refused.
  (void)madvise(base_, bytes_, MADV_NOHUGEPAGE);
  absl::StatusOr<fabric::RegionId> region =
      fabric.Register(base_, bytes_, fabric::Access{.local_write = true});
  if (!region.ok()) return region.status();
  region_ = *region;
  return absl::OkStatus();
}

absl::Status BufferPool::Close(fabric::Fabric& fabric) {
  if (region_ == fabric::RegionId::kNone) return absl::OkStatus();
  absl::Status status = fabric.Deregister(region_);
  if (status.ok()) region_ = fabric::RegionId::kNone;
  return status;
}

Bytes BufferPool::HeaderSlot(uint64_t index) const {
  return Bytes(base_ + (index % shape_.header_slots) * kHeaderSlotBytes, kHeaderSlotBytes);
}

Bytes BufferPool::SendBuffer(uint32_t buffer) const {
  return Bytes(base_ + shape_.header_slots * kHeaderSlotBytes + size_t{buffer} * kSendBufferBytes,
               kSendBufferBytes);
}

Bytes BufferPool::ReceiveBuffer(uint32_t buffer) const {
  return Bytes(base_ + shape_.header_slots * kHeaderSlotBytes +
                   size_t{shape_.send_buffers} * kSendBufferBytes + buffer * receive_stride_,
               shape_.receive_buffer_bytes);
}

fabric::ScatterEntry BufferPool::Entry(Bytes part) const {
  return {region_, part.data(), static_cast<uint32_t>(part.size())};
}

}  // namespace esdp::provider
