#ifndef ESDP_IMPL_SOCKETS_MEMORY_REGION_STATE_H_
#define ESDP_IMPL_SOCKETS_MEMORY_REGION_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "esdp/region.h"
#include "impl/provider/shard.h"
#include "impl/provider/types.h"
#include "impl/sockets/memory/owned_memory.h"
#include "impl/sockets/memory/region_anchor.h"

namespace esdp::sockets {

class ContextState;

// What stands behind a Region: held by its handles and by every operation that uses it. The last of
// them to go deregisters.
//
//   Owns:     the registration, and the memory if it was allocated here.
//   Threads:  any.
//   Blocks:   never; the last holder may wait for the shard lock, unless it has it.
//   Units:    bytes.
//   Errors:   –
class RegionState : public std::enable_shared_from_this<RegionState> {
 public:
  RegionState(std::shared_ptr<ContextState> context, std::shared_ptr<provider::MemoryRegion> memory,
              const RegisterOptions& options, uint64_t length, OwnedMemory owned);
  ~RegionState();
  RegionState(const RegionState&) = delete;
  RegionState& operator=(const RegionState&) = delete;

  const ContextState* context() const { return context_.get(); }
  ContextState& its_context() { return *context_; }
  provider::MemoryRegion* memory() const { return memory_.get(); }
  uint64_t length() const { return length_; }
  bool local_write() const { return options_.local_write; }
  bool open() const { return open_.load(std::memory_order_acquire); }

  const RegionAnchor* anchor() const { return anchor_; }
  uint64_t number() const { return number_; }

  RegionInfo Describe() const;
  absl::Status Close();

 private:
  const std::shared_ptr<ContextState> context_;
  std::shared_ptr<provider::MemoryRegion> memory_;
  const RegisterOptions options_;
  const uint64_t length_;
  OwnedMemory owned_;
  std::atomic<bool> open_{true};
  uint64_t number_ = 0;
  RegionAnchor* const anchor_;
};

// The door of this room into the public handles.
class SliceAccess {
 public:
  static bool IsEmpty(const Slice& slice) { return slice.anchor_ == nullptr; }
  // Null where the region is gone.
  static RegionState* StateOf(const Slice& slice) {
    return IsEmpty(slice) ? nullptr : slice.anchor_->Find(slice.number_);
  }
  static Region Make(std::shared_ptr<RegionState> state) {
    Region region;
    region.state_ = std::move(state);
    return region;
  }
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_REGION_STATE_H_
