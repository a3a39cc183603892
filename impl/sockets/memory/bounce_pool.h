#ifndef ESDP_IMPL_SOCKETS_MEMORY_BOUNCE_POOL_H_
#define ESDP_IMPL_SOCKETS_MEMORY_BOUNCE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/provider/types.h"
#include "impl/sockets/memory/owned_memory.h"

namespace esdp::sockets {

class ContextState;

// Registered memory that unregistered bytes pass through: runs of blocks, first fit.
//
//   Owns:     its memory and its registrations, made at the first use. Where the pool is in use and
//             a socket has less than its own share of it, further memory is registered, which stays
//             for whoever comes to need some: at most as many shares as there are sockets.
//   Threads:  any.
//   Blocks:   only for a registration.
//   Units:    bytes; blocks of 4 KiB.
//   Errors:   Take: InvalidArgument for more than the whole pool, ResourceExhausted (kSocketWindow)
//             for what does not fit now.
class BouncePool {
 public:
  static constexpr size_t kBlockBytes = 4096;
  // What each socket may have, however much others hold: a peer that takes nothing costs nobody
  // else a send.
  static constexpr size_t kShareBytes = 64 * 1024;

  explicit BouncePool(size_t bytes) : pool_((bytes + kBlockBytes - 1) / kBlockBytes, 0) {}
  ~BouncePool();

  // What one socket holds, and what it has had.
  class Share {
   public:
    uint64_t copies() const { return copies_.load(std::memory_order_relaxed); }
    uint64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }

   private:
    friend class BouncePool;
    size_t blocks_ = 0;
    std::atomic<uint64_t> copies_{0};
    std::atomic<uint64_t> copied_bytes_{0};
  };
  struct Range {
    uint32_t block = 0;
    std::span<std::byte> memory;
    provider::Piece piece;
  };
  absl::StatusOr<Range> Take(ContextState& context, Share& share, size_t bytes);
  void Give(uint32_t block, Share& share);
  uint64_t in_use() const;

 private:
  struct Extent {
    Extent(size_t count, uint32_t first_block) : blocks(count), first(first_block) {}
    std::vector<uint32_t> blocks;  // at the first of a run: its length; inside: kInside; 0: free
    uint32_t first;                // number of its first block
    OwnedMemory memory;
    std::shared_ptr<provider::MemoryRegion> region;
    std::unique_ptr<Extent> next;
  };

  static absl::Status Register(ContextState& context, Extent& extent);
  absl::Status Open(ContextState& context);  // at the first use
  static std::optional<size_t> FindRun(const Extent& extent, size_t count);
  absl::Status Grow(ContextState& context);
  std::optional<Range> TakeFrom(Extent& extent, Share& share, size_t bytes);
  absl::Status Refusal(const Share& share) const;

  mutable std::mutex mutex_;
  Extent pool_;
  Extent* newest_ = &pool_;
  uint64_t used_ = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_BOUNCE_POOL_H_
