#ifndef ESDP_IMPL_SOCKETS_BOUNCE_POOL_H_
#define ESDP_IMPL_SOCKETS_BOUNCE_POOL_H_

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
#include "impl/sockets/owned_memory.h"

namespace esdp::sockets {

class ContextState;

// Registered memory that unregistered bytes pass through: runs of blocks, first fit.
//
//   Owns:     its memory and its registration, made at the first use.
//   Threads:  any.
//   Blocks:   only the first use, for the registration.
//   Units:    bytes; blocks of 4 KiB.
//   Errors:   Take: InvalidArgument for more than the whole pool, ResourceExhausted (kSocketWindow)
//   for what does not
//             fit now.
class BouncePool {
 public:
  static constexpr size_t kBlockBytes = 4096;

  explicit BouncePool(size_t bytes) : blocks_((bytes + kBlockBytes - 1) / kBlockBytes) {}

  struct Range {
    uint32_t block = 0;
    std::span<std::byte> memory;
    provider::Piece piece;
  };
  absl::StatusOr<Range> Take(ContextState& context, size_t bytes);
  void Give(uint32_t block);
  uint64_t in_use() const;

 private:
  absl::Status Open(ContextState& context);
  std::optional<size_t> FindRun(size_t count) const;

  mutable std::mutex mutex_;
  std::vector<uint32_t> blocks_;  // at the first of a run: its length; inside: kInside; 0: free
  OwnedMemory memory_;
  std::shared_ptr<provider::MemoryRegion> region_;
  uint64_t used_ = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BOUNCE_POOL_H_
