#ifndef ESDP_IMPL_BASE_HANDLE_TABLE_H_
#define ESDP_IMPL_BASE_HANDLE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace esdp {

inline constexpr uint64_t kNoHandle = 0;  // no table ever gives it out

// Names objects by number. A handle is a slot and the slot's generation, so that one that outlived
// its object is detected, never followed to the slot's next tenant.
//
//   Owns:     its values; a pointer from Find holds until that value is erased.
//   Threads:  not thread-safe.
//   Blocks:   never; allocates only when there are more values than ever before.
//   Units:    a handle carries its slot in the lower and its generation in the upper 32 bits.
//   Errors:   a stale or invented handle is not found; a full table gives kNoHandle.
template <typename T>
class HandleTable {
 public:
  explicit HandleTable(size_t values_max = std::numeric_limits<uint32_t>::max())
      : values_max_(values_max) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // kNoHandle when values_max are there already; the value is then dropped.
  [[nodiscard]] uint64_t Insert(T value) {
    if (size_ >= values_max_) return kNoHandle;
    const std::optional<uint32_t> index = TakeSlot();
    if (!index) return kNoHandle;
    Slot& slot = At(*index);
    slot.value.emplace(std::move(value));
    ++size_;
    return Handle(*index, slot.generation);
  }

  // The next Insert does not allocate.
  void ReserveOne() {
    if (first_free_ == kNoSlot) EnsureBlock();
  }

  // nullptr for a handle that names no value of this table, or no longer.
  T* Find(uint64_t handle) {
    Slot* slot = SlotOf(handle);
    return slot == nullptr ? nullptr : &*slot->value;
  }
  const T* Find(uint64_t handle) const { return const_cast<HandleTable*>(this)->Find(handle); }

  // False when there was nothing to erase.
  bool Erase(uint64_t handle) {
    Slot* slot = SlotOf(handle);
    if (slot == nullptr) return false;
    slot->value.reset();
    --size_;
    // A slot whose generations are used up is never used again: a handle must not come back to
    // life.
    if (++slot->generation != 0) {
      slot->next_free = first_free_;
      first_free_ = static_cast<uint32_t>(handle);
    }
    return true;
  }

  // Calls visit(handle, value) for each value, in slot order; it must neither insert nor erase.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (uint32_t i = 0; i < slots_; ++i) {
      Slot& slot = At(i);
      if (slot.value) visit(Handle(i, slot.generation), *slot.value);
    }
  }

 private:
  static constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kBlock = 16;

  struct Slot {
    std::optional<T> value;
    uint32_t generation = 1;
    uint32_t next_free = kNoSlot;
  };

  static uint64_t Handle(uint32_t index, uint32_t generation) {
    return (static_cast<uint64_t>(generation) << 32) | index;
  }

  Slot& At(uint32_t index) { return blocks_[index / kBlock][index % kBlock]; }

  std::optional<uint32_t> TakeSlot() {
    if (first_free_ != kNoSlot) {
      const uint32_t index = first_free_;
      first_free_ = At(index).next_free;
      return index;
    }
    if (slots_ == kNoSlot) return std::nullopt;
    EnsureBlock();
    return slots_++;
  }

  // Of the slot that has never been used.
  void EnsureBlock() {
    if (slots_ / kBlock == blocks_.size()) blocks_.push_back(std::make_unique<Slot[]>(kBlock));
  }

  Slot* SlotOf(uint64_t handle) {
    const uint32_t index = static_cast<uint32_t>(handle);
    if (index >= slots_) return nullptr;
    Slot& slot = At(index);
    return slot.value && slot.generation == (handle >> 32) ? &slot : nullptr;
  }

  size_t values_max_;
  size_t size_ = 0;
  uint32_t first_free_ = kNoSlot;
  uint32_t slots_ = 0;                           // used before, in the blocks
  std::vector<std::unique_ptr<Slot[]>> blocks_;  // slots never move
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_HANDLE_TABLE_H_
