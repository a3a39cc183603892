#ifndef ESDP_IMPL_SOCKETS_FILE_SLOT_POOL_H_
#define ESDP_IMPL_SOCKETS_FILE_SLOT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "impl/provider/types.h"
#include "impl/sockets/memory/owned_memory.h"

namespace esdp::sockets {

class ContextState;

// Registered memory that the bytes of files pass through, in slots.
//
//   Owns:     its memory and the registrations, made as transfers begin and kept: nothing is
//             registered while data flows.
//   Threads:  any.
//   Blocks:   only Prepare, for a registration.
//   Units:    bytes; slots of 256 KiB.
//   Errors:   Prepare: ResourceExhausted (kMemory).
class SlotPool {
 public:
  static constexpr size_t kSlotBytes = 256 * 1024;
  static constexpr uint32_t kSlotsOfTransfer = 4;  // 10 GB/s over 100 us

  explicit SlotPool(size_t bytes) : extents_max_(ExtentsOf(bytes)) {}

  struct Slot {
    std::span<std::byte> memory;
    provider::Piece piece;
  };

  // Who waits for a slot: in the order of asking, each for one.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    virtual void OnSlot(const Slot& slot) = 0;  // its own now; under no lock of the pool

   private:
    friend class SlotPool;
    std::shared_ptr<Waiter> self_;  // while it waits
    Waiter* next_ = nullptr;
  };

  // One more transfer begins: there are slots for it, unless the pool has all it may have.
  absl::Status Prepare(ContextState& context);
  void EndTransfer();
  // Nothing: `waiter` gets one once it is free.
  std::optional<Slot> Take(const std::shared_ptr<Waiter>& waiter);
  void Give(const Slot& slot);
  void Forget(Waiter& waiter);  // unless one is on its way to it

 private:
  struct Extent {
    OwnedMemory memory;
    std::shared_ptr<provider::MemoryRegion> region;
  };
  static size_t ExtentsOf(size_t bytes);

  const size_t extents_max_;
  std::mutex mutex_;
  size_t transfers_ = 0;
  size_t opening_ = 0;
  std::vector<Extent> extents_;
  std::vector<Slot> free_;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;  // where there is a first one
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_SLOT_POOL_H_
