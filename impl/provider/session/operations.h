#ifndef ESDP_IMPL_PROVIDER_SESSION_OPERATIONS_H_
#define ESDP_IMPL_PROVIDER_SESSION_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/provider/regions.h"
#include "impl/provider/types.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::provider {

// What the core calls an operation.
struct Operation {
  enum class Kind : uint8_t { kTransfer, kShutdown, kClose, kSuspend };

  Kind kind = Kind::kTransfer;
  ConnectionId connection = ConnectionId::kNone;
  Transfer* transfer = nullptr;  // of kTransfer
  // Where the last range was found: ranges come nearly in order.
  uint32_t piece = 0;
  uint64_t piece_begin = 0;
};

// The memory of a range, which lies inside one chunk; nothing if it does not lie inside the
// transfer, which would be a fault of the core. `place` is that of the connection's fabric.
std::optional<ResolvedRange> Resolve(Operation& operation, const sdp::OperationRange& range,
                                     uint8_t place);

// Names the live operations of a shard for its cores. A name is a slot and its generation, so that
// a late cancel never hits the slot's next tenant.
//
//   Owns:     its records, not the transfers.
//   Threads:  the holder of the shard lock.
//   Blocks:   never; allocates only while more operations live than ever before.
//   Units:    –
//   Errors:   Insert answers nothing at 4 Mi live operations. A pointer from Find holds until the
//   next Insert.
class OperationTable {
 public:
  // Room for so many at once.
  void Reserve(size_t operations);
  std::optional<sdp::OperationId> Insert(const Operation& operation);
  Operation* Find(sdp::OperationId id) {
    const uint32_t value = static_cast<uint32_t>(id);
    const uint32_t index = value & kSlotMask;
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.used && slot.generation == value >> kSlotBits ? &slot.operation : nullptr;
  }
  void Erase(sdp::OperationId id);
  // Erases each operation of that connection, and then hands it to `visit`, which may Insert.
  template <typename Visit>
  void TakeAllOf(ConnectionId connection, Visit visit) {
    for (uint32_t index = 0; index < slots_.size(); ++index) {
      const Slot& slot = slots_[index];
      if (!slot.used || slot.operation.connection != connection) continue;
      const Operation operation = slot.operation;
      const sdp::OperationId id{(slot.generation << kSlotBits) | index};
      Erase(id);
      visit(id, operation);
    }
  }
  size_t size() const { return size_; }

 private:
  static constexpr uint32_t kSlotBits = 22;
  static constexpr uint32_t kSlotMask = (1u << kSlotBits) - 1;
  static constexpr uint32_t kGenerationMask = (1u << (32 - kSlotBits)) - 1;
  static constexpr uint32_t kNoSlot = ~0u;
  static constexpr size_t kSlotsFirst = 64;

  struct Slot {
    Operation operation;
    uint32_t generation = 1;  // never 0: no name is 0
    uint32_t next_free = kNoSlot;
    bool used = false;
  };

  std::vector<Slot> slots_;
  uint32_t first_free_ = kNoSlot;
  size_t size_ = 0;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_OPERATIONS_H_
