#include "impl/provider/transport/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "impl/base/status.h"

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
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (blocks_[i].base != nullptr) munmap(blocks_[i].base, blocks_[i].bytes());
  }
  if (base_ != nullptr && !spares_->Keep(base_, bytes_)) munmap(base_, bytes_);
}

absl::Status BufferPool::Open(fabric::Fabric& fabric, const Shape& shape, SpareMappings& spares) {
  shape_ = shape;
  spares_ = &spares;
  // Neighbouring buffers of different cache lines: the fabric may fill one while we read another.
  Block& block = blocks_[0];
  block.buffers = shape.receive_buffers;
  block.stride = RoundUp(shape.receive_buffer_bytes, kCacheLine);
  block.buffer_bytes = shape.receive_buffer_bytes;
  bytes_ = shape.header_slots * kHeaderSlotBytes + shape.send_buffers * kSendStride + block.bytes();
  base_ = spares.Take(bytes_);
  if (base_ == nullptr) base_ = Map(bytes_);
  if (base_ == nullptr) return MappingFailed(bytes_, errno);
  block.base = base_ + bytes_ - block.bytes();
  block_of_.assign(shape.receive_buffers, kNowhere);
  absl::StatusOr<fabric::RegionId> region =
      fabric.Register(base_, bytes_, fabric::Access{.local_write = true});
  if (!region.ok()) return region.status();
  region_ = block.region = *region;
  return absl::OkStatus();
}

absl::Status BufferPool::Close(fabric::Fabric& fabric) {
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (absl::Status status = Release(fabric, blocks_[i]); !status.ok()) return status;
  }
  if (region_ == fabric::RegionId::kNone) return absl::OkStatus();
  ESDP_RETURN_IF_ERROR(ReleaseElsewhere(base_));
  absl::Status status = fabric.Deregister(region_);
  if (status.ok()) region_ = fabric::RegionId::kNone;
  return status;
}

absl::Status BufferPool::Release(fabric::Fabric& fabric, Block& block) {
  if (block.base == nullptr) return absl::OkStatus();
  ESDP_RETURN_IF_ERROR(ReleaseElsewhere(block.base));
  if (absl::Status status = fabric.Deregister(block.region); !status.ok()) return status;
  munmap(block.base, block.bytes());
  block = Block{};
  return absl::OkStatus();
}

absl::Status BufferPool::ReleaseElsewhere(const std::byte* base) {
  for (auto each = elsewhere_.begin(); each != elsewhere_.end();) {
    if (each->base != base) {
      ++each;
      continue;
    }
    ESDP_RETURN_IF_ERROR(each->fabric->Deregister(each->region));
    each = elsewhere_.erase(each);
  }
  return absl::OkStatus();
}

// It may be registered there from before.
absl::StatusOr<fabric::RegionId> BufferPool::RegisterWith(fabric::Fabric& fabric, std::byte* base,
                                                          size_t bytes) {
  const auto known = std::ranges::find_if(elsewhere_, [&](const Elsewhere& each) {
    return each.fabric == &fabric && each.base == base;
  });
  if (known == elsewhere_.end()) {
    return fabric.Register(base, bytes, fabric::Access{.local_write = true});
  }
  const fabric::RegionId region = known->region;
  elsewhere_.erase(known);
  return region;
}

absl::Status BufferPool::Move(fabric::Fabric& from, fabric::Fabric& to) {
  elsewhere_.reserve(elsewhere_.size() + kBlocks);  // from here on nothing throws for want of it
  std::array<fabric::RegionId, kBlocks> regions{};
  for (size_t i = 0; i < kBlocks; ++i) {
    const Block& block = blocks_[i];
    if (block.base == nullptr) continue;
    auto region =
        i == 0 ? RegisterWith(to, base_, bytes_) : RegisterWith(to, block.base, block.bytes());
    if (!region.ok()) {
      for (size_t j = 0; j < i; ++j) {
        if (blocks_[j].base == nullptr) continue;
        elsewhere_.push_back({&to, j == 0 ? base_ : blocks_[j].base, regions[j]});
      }
      return region.status();
    }
    regions[i] = *region;
  }
  for (size_t i = 0; i < kBlocks; ++i) {
    Block& block = blocks_[i];
    if (block.base == nullptr) continue;
    elsewhere_.push_back(
        {&from, i == 0 ? base_ : block.base, std::exchange(block.region, regions[i])});
  }
  region_ = blocks_[0].region;
  return absl::OkStatus();
}

absl::Status BufferPool::Change(fabric::Fabric& fabric, uint32_t receive_buffers,
                                uint32_t receive_buffer_bytes) {
  const Block& first = blocks_[0];
  if (receive_buffers == first.buffers && receive_buffer_bytes == first.buffer_bytes) {
    newest_ = 0;
    return absl::OkStatus();
  }
  uint8_t next = 1;
  while (next < kBlocks && (blocks_[next].in_use > 0 || next == newest_)) ++next;
  if (next == kBlocks) {
    return absl::FailedPreconditionError("receive buffers of all changes before are still in use");
  }
  if (absl::Status status = Release(fabric, blocks_[next]); !status.ok()) return status;
  Block block;
  block.buffers = receive_buffers;
  block.stride = RoundUp(receive_buffer_bytes, kCacheLine);
  block.buffer_bytes = receive_buffer_bytes;
  if (receive_buffers > block_of_.size()) block_of_.resize(receive_buffers, kNowhere);
  block.base = Map(block.bytes());
  if (block.base == nullptr) return MappingFailed(block.bytes(), errno);
  absl::StatusOr<fabric::RegionId> region =
      fabric.Register(block.base, block.bytes(), fabric::Access{.local_write = true});
  if (!region.ok()) {
    munmap(block.base, block.bytes());
    return region.status();
  }
  block.region = *region;
  blocks_[next] = block;
  newest_ = next;
  return absl::OkStatus();
}

size_t BufferPool::BytesFor(uint32_t receive_buffers, uint32_t receive_buffer_bytes) const {
  const Block& first = blocks_[0];
  const bool is_first =
      receive_buffers == first.buffers && receive_buffer_bytes == first.buffer_bytes;
  return is_first ? 0 : receive_buffers * RoundUp(receive_buffer_bytes, kCacheLine);
}

size_t BufferPool::changed_bytes() const {
  size_t bytes = 0;
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (blocks_[i].in_use > 0 || i == newest_) bytes += blocks_[i].bytes();
  }
  return bytes;
}

void BufferPool::Retire(uint32_t buffer) {
  if (IsLent(buffer)) lent_ = {};
  Leave(buffer);
  block_of_[buffer] = kNowhere;
}

void BufferPool::Leave(uint32_t buffer) {
  const uint8_t place = block_of_[buffer];
  if (place == kNowhere || --blocks_[place].in_use > 0) return;
  // Nobody looks at these pages any more: the system may have them back.
  if (place != newest_) (void)madvise(blocks_[place].base, blocks_[place].bytes(), MADV_DONTNEED);
}

fabric::ScatterEntry BufferPool::PostEntry(uint32_t buffer, uint32_t bytes) {
  if (IsLent(buffer)) lent_ = {};
  uint8_t& place = block_of_[buffer];
  if (place != newest_) {
    Leave(buffer);
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

void BufferPool::SettleRest() {
  const ConstBytes rest = lent_.message.subspan(lent_.taken);
  CopyBytes(ReceiveBuffer(lent_.buffer).subspan(lent_.taken, rest.size()), rest);
  lent_ = {};
}

std::optional<ConstBytes> BufferPool::Take(uint32_t buffer, uint32_t offset, uint32_t length) {
  const bool is_lent = IsLent(buffer);
  const ConstBytes received = is_lent ? lent_.message : ConstBytes(ReceiveBuffer(buffer));
  if (offset > received.size() || length > received.size() - offset) return std::nullopt;
  if (is_lent) lent_.taken = std::max<size_t>(lent_.taken, size_t{offset} + length);
  return received.subspan(offset, length);
}

fabric::ScatterEntry BufferPool::Entry(Bytes part) const {
  return {region_, part.data(), static_cast<uint32_t>(part.size())};
}

}  // namespace esdp::provider
