#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_BUFFER_POOL_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_BUFFER_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/spare_mappings.h"
#include "impl/fabric/port.h"

namespace esdp::provider {

// The private memory of one connection: header slots, send buffers and receive buffers in one
// anonymous mapping, registered once. Pages are committed when they are first written, so a
// connection that carries nothing costs little.
//
//   Owns:     the mapping, which it leaves to those that are spare; its registration until Close has
//             succeeded.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Open tells what the system refused. Close is to be repeated while it fails with
//   FailedPrecondition: the fabric
//             still has work that names the memory. At its destruction the registration has to
//             be gone by then, or its fabric.
class BufferPool {
 public:
  static constexpr size_t kHeaderSlotBytes = 64;  // a cache line; the longest header has 36 bytes
  static constexpr uint32_t kSendBufferBytes = 16 * 1024;  // coalesced payload of one message

  struct Shape {
    uint32_t header_slots = 0;
    uint32_t send_buffers = 0;
    uint32_t receive_buffers = 0;
    uint32_t receive_buffer_bytes = 0;
  };

  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Those that are spare outlive it.
  absl::Status Open(fabric::Fabric& fabric, const Shape& shape, SpareMappings& spares);
  absl::Status Close(fabric::Fabric& fabric);
  // What is posted from now on is posted to the other fabric. Its registration with the one before
  // stays until Close, since that may still have work that names the memory. Where it fails nothing
  // has changed.
  absl::Status Move(fabric::Fabric& from, fabric::Fabric& to);
  // The receive buffers that are posted from now on are `receive_buffers` of
  // `receive_buffer_bytes`, in a mapping of their own unless they are those of the start; those in
  // use stay where they are. FailedPrecondition while buffers of all changes before are in use.
  absl::Status Change(fabric::Fabric& fabric, uint32_t receive_buffers,
                      uint32_t receive_buffer_bytes);
  // This buffer is not posted any more, and its number beyond those of the last change.
  void Retire(uint32_t buffer);
  // The mapping that a Change to this takes.
  size_t BytesFor(uint32_t receive_buffers, uint32_t receive_buffer_bytes) const;
  // Of the mappings that Change has made: the newest, and those that are still used.
  size_t newest_bytes() const { return newest_ == 0 ? 0 : blocks_[newest_].bytes(); }
  size_t changed_bytes() const;

  // False answers mean a number outside the shape.
  bool HasSendBuffer(uint32_t buffer) const { return buffer < shape_.send_buffers; }
  bool HasReceiveBuffer(uint32_t buffer) const { return buffer < block_of_.size(); }

  // The index is taken modulo the number of slots.
  Bytes HeaderSlot(uint64_t index) const;
  Bytes SendBuffer(uint32_t buffer) const;
  // The first `bytes` of a send buffer with `header_bytes`, kHeaderSlotBytes at most, of room that
  // is its own in front: a message whose header lies before its payload is one entry.
  Bytes WithHeader(uint32_t buffer, size_t header_bytes, size_t bytes) const {
    return Bytes(SendBuffer(buffer).data() - header_bytes, header_bytes + bytes);
  }
  Bytes ReceiveBuffer(uint32_t buffer) const;  // where it was posted last
  // The message in this buffer lies there in truth, but for its head, until Settle. One at a time.
  void Lend(uint32_t buffer, ConstBytes message) { lent_ = {message, buffer, 0}; }
  // What has not been taken out of the message that is lent goes into its buffer.
  void Settle() {
    if (!lent_.message.empty()) SettleRest();
  }
  // So many bytes of what has been received in this buffer; nothing where there are not so many.
  // Where it is lent, what lies before them is not asked for any more.
  std::optional<ConstBytes> Take(uint32_t buffer, uint32_t offset, uint32_t length);
  // Where the buffer is to be posted, for so many bytes at most.
  fabric::ScatterEntry PostEntry(uint32_t buffer, uint32_t bytes);

  fabric::ScatterEntry Entry(Bytes part) const;

 private:
  // Receive buffers of one size, side by side.
  struct Block {
    std::byte* base = nullptr;
    uint32_t buffers = 0;
    size_t stride = 0;
    uint32_t buffer_bytes = 0;
    uint32_t in_use = 0;
    fabric::RegionId region = fabric::RegionId::kNone;
    size_t bytes() const { return buffers * stride; }
  };
  // The first is that of the start. The others are made by changes, and go when they are not used.
  static constexpr uint8_t kBlocks = 5;
  static constexpr uint8_t kNowhere = kBlocks;

  // Memory that is registered with a fabric which is not used any more.
  struct Elsewhere {
    fabric::Fabric* fabric = nullptr;
    const std::byte* base = nullptr;
    fabric::RegionId region = fabric::RegionId::kNone;
  };
  struct Lent {
    ConstBytes message;
    uint32_t buffer = 0;
    size_t taken = 0;  // bytes of it, from the first one on
  };

  absl::Status Release(fabric::Fabric& fabric, Block& block);
  absl::Status ReleaseElsewhere(const std::byte* base);
  absl::StatusOr<fabric::RegionId> RegisterWith(fabric::Fabric& fabric, std::byte* base,
                                                size_t bytes);
  bool IsLent(uint32_t buffer) const { return !lent_.message.empty() && lent_.buffer == buffer; }
  void SettleRest();
  void Leave(uint32_t buffer);

  Shape shape_;
  SpareMappings* spares_ = nullptr;
  std::array<Block, kBlocks> blocks_;
  uint8_t newest_ = 0;
  std::vector<uint8_t> block_of_;  // of each receive buffer
  Lent lent_;
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
  fabric::RegionId region_ = fabric::RegionId::kNone;
  std::vector<Elsewhere> elsewhere_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_BUFFER_POOL_H_
