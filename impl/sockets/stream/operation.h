#ifndef ESDP_IMPL_SOCKETS_STREAM_OPERATION_H_
#define ESDP_IMPL_SOCKETS_STREAM_OPERATION_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "esdp/event.h"
#include "impl/base/mutex.h"
#include "impl/provider/types.h"
#include "impl/sockets/stream/receive_ranges.h"

namespace esdp::sockets {

class FileOperation;
class QueueState;
class RegionState;
class StreamState;

struct Operation;

// What the provider carries for an operation, and the way back from it.
struct OperationTransfer : provider::Transfer {
  static Operation& OperationOf(provider::Transfer& transfer) {
    return *static_cast<OperationTransfer&>(transfer).operation;
  }
  Operation* operation = nullptr;  // the one it belongs to, for good
};

// One accepted operation, from its post to its terminal event.
struct Operation {
  EventType type = EventType::kNone;
  OpId id = OpId::kNone;
  SocketId socket = SocketId::kNone;
  uint64_t cookie = 0;
  std::shared_ptr<QueueState> queue;  // holds a reserved slot there

  // Sends and receives: what the provider is asked to do, and the stream they keep from ending.
  OperationTransfer transfer;
  std::shared_ptr<StreamState> owner;
  // The vectors keep their room from one operation to the next.
  std::vector<provider::Piece> memory;
  std::vector<std::shared_ptr<RegionState>> regions;
  std::optional<uint32_t> bounce;  // block of the bounce pool, of SendCopy
  // RecvCopy: its bytes. Kept from one operation to the next.
  std::shared_ptr<provider::MemoryRegion> unregistered;

  std::shared_ptr<FileOperation> file;  // makes the transfers; changes under the table's lock
  uint32_t poll_mask = 0;

  // Accept.
  int accepts_left = 0;  // 0: until cancelled

  bool has_alarm = false;
};

// False: there was no memory for it.
template <typename List>
bool Append(List& list, Operation* operation) {
  try {
    list.push_back(operation);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The one of this name, which the list has no more; nullptr if it never had.
template <typename List>
Operation* TakeNamed(List& list, OpId op) {
  const auto found = std::ranges::find_if(list, [&](Operation* it) { return it->id == op; });
  if (found == list.end()) return nullptr;
  Operation* const operation = *found;
  list.erase(found);
  return operation;
}

// Sends that are over within their call: they take no place in the table.
struct ImmediateSend : provider::ImmediateSend {
  EventType type = EventType::kNone;
  absl::Span<OpId> ids;  // of each part, once it is sent; or of none
  SocketId socket = SocketId::kNone;
  uint64_t cookie = 0;
  QueueState* queue = nullptr;  // holds a reserved slot there for each
};

// The operations of a Context. Slots keep their place in memory; a slot's generation is in the
// OpId, so that an old name never means a new operation.
//
//   Owns:     the operations.
//   Threads:  any.
//   Blocks:   never beyond its own short lock. Allocates only in New.
//   Units:    –
//   Errors:   see New.
class OperationTable {
 public:
  explicit OperationTable(uint32_t max) : max_(max) {}

  // What With and List may look at is there before they can find it. Where the table has to grow,
  // `prepare(capacity)` comes first. Null: there are `max` of them. Throws std::bad_alloc, and
  // nothing has changed.
  template <typename Prepare>
  Operation* New(EventType type, SocketId socket, const std::shared_ptr<QueueState>& queue,
                 Prepare prepare) {
    for (;;) {
      uint32_t capacity = 0;
      Operation* operation = Take(type, socket, queue, capacity);
      if (operation != nullptr || capacity == 0) return operation;
      prepare(capacity);
      GrowTo(capacity);
    }
  }
  // What the receives are filling, until Free.
  ReceiveRanges& ranges() { return ranges_; }
  // Neither With nor List finds the operation after that. Returns its queue. Its owner has been
  // taken before: the last holder of a stream has work to do.
  std::shared_ptr<QueueState> Free(Operation& operation);
  // Before Free: it goes without the lock, and is looked at with it.
  std::shared_ptr<FileOperation> TakeFile(Operation& operation);
  // Calls `use` with the operation if it still lives, under the table's lock: it must be short and
  // call nobody.
  template <typename Use>
  bool With(OpId id, Use use) {
    const std::lock_guard lock(mutex_);
    Operation* operation = FindLocked(id);
    if (operation == nullptr) return false;
    use(*operation);
    return true;
  }
  // The names of the live operations that `wanted` picks, oldest first.
  template <typename Wanted>
  std::vector<OpId> List(Wanted wanted) {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<uint64_t, OpId>> found;
    for (auto& block : blocks_) {
      for (size_t i = 0; i < kBlock; ++i) {
        Slot& slot = block[i];
        if (slot.used && wanted(slot.operation)) found.emplace_back(slot.number, slot.operation.id);
      }
    }
    return InOrder(std::move(found));
  }

  // Of those that live, while no other thread uses the table; null for none. Allocates nothing.
  Operation* Oldest();

  // A name for a send that is over within its call: no operation has it. By the holder of the shard lock.
  OpId NamePrompt() {
    const uint64_t number = prompt_.load(std::memory_order_relaxed) + 1;
    prompt_.store(number, std::memory_order_relaxed);  // nobody else writes
    return OpId{((number >> 31 & 0x7fffffff) << 32) | kOutside | (number & 0x7fffffff)};
  }

  uint32_t live() const;
  uint64_t posted() const;

 private:
  static constexpr uint32_t kBlock = 64;
  static constexpr uint32_t kNoSlot = ~0u;
  static constexpr uint64_t kOutside = 1u << 31;  // no table is so long

  struct Slot {
    Operation operation;
    uint64_t number = 0;  // of the post, to list in order
    uint32_t index = 0;
    uint32_t generation = 0;
    uint32_t next_free = kNoSlot;
    bool used = false;
  };

  // Null: `capacity` is what would give it room, or 0 where there are `max`.
  Operation* Take(EventType type, SocketId socket, const std::shared_ptr<QueueState>& queue,
                  uint32_t& capacity);
  // Does nothing where another thread has come before.
  void GrowTo(uint32_t capacity);
  Slot& At(uint32_t index) { return blocks_[index / kBlock][index % kBlock]; }
  Operation* FindLocked(OpId id);
  static std::vector<OpId> InOrder(std::vector<std::pair<uint64_t, OpId>> found);

  const uint32_t max_;
  ReceiveRanges ranges_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Slot[]>> blocks_;
  uint32_t first_free_ = kNoSlot;
  uint32_t live_ = 0;
  uint64_t posted_ = 0;
  std::atomic<uint64_t> prompt_{0};
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_OPERATION_H_
