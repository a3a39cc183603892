#include "impl/sockets/file/slot_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"

namespace esdp::sockets {
namespace {

constexpr size_t kExtentBytes = SlotPool::kSlotsOfTransfer * SlotPool::kSlotBytes;

}  // namespace

size_t SlotPool::ExtentsOf(size_t bytes) { return std::max<size_t>(1, bytes / kExtentBytes); }

// Not under the lock: registering waits for the shard lock, and whoever has that gives slots back.
absl::Status SlotPool::Prepare(ContextState& context) {
  bool has_some = false;
  {
    const std::lock_guard lock(mutex_);
    ++transfers_;
    has_some = !extents_.empty();
    if (extents_.size() + opening_ >= std::min(transfers_, extents_max_)) return absl::OkStatus();
    ++opening_;
  }
  Extent extent{MapMemory(kExtentBytes, Pages::kLarge), nullptr};
  absl::Status status;
  if (extent.memory == nullptr) {
    status = MakeError(ErrorKind::kMemory, "no memory for the slots that files pass through");
  } else {
    auto region = context.shard().Register({extent.memory.get(), kExtentBytes}, true,
                                           provider::Exposure::kPerOperation);
    if (region.ok()) {
      extent.region = *std::move(region);
    } else {
      status = Adopt(region.status());
    }
  }
  const std::span<std::byte> memory{extent.memory.get(), kExtentBytes};
  provider::MemoryRegion* const region = extent.region.get();
  {
    const std::lock_guard lock(mutex_);
    --opening_;
    if (!status.ok()) {
      if (has_some) return absl::OkStatus();  // with fewer it takes longer
      --transfers_;
      return status;
    }
    extents_.push_back(std::move(extent));
    free_.reserve(extents_.size() * kSlotsOfTransfer);  // Give must not allocate
  }
  for (size_t offset = 0; offset < kExtentBytes; offset += kSlotBytes) {
    Give(Slot{memory.subspan(offset, kSlotBytes), {region, offset, kSlotBytes}});
  }
  return absl::OkStatus();
}

void SlotPool::EndTransfer() {
  const std::lock_guard lock(mutex_);
  --transfers_;
}

std::optional<SlotPool::Slot> SlotPool::Take(const std::shared_ptr<Waiter>& waiter) {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (waiter->self_ == nullptr) {
    waiter->self_ = waiter;
    waiter->next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = waiter.get();
    last_ = waiter.get();
  }
  return std::nullopt;
}

void SlotPool::Give(const Slot& slot) {
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) return free_.push_back(slot);
    waiter = std::move(first_->self_);
    first_ = waiter->next_;
  }
  waiter->OnSlot(slot);
}

void SlotPool::Forget(Waiter& waiter) {
  std::shared_ptr<Waiter> forgotten;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (waiter.self_ == nullptr) return;
  forgotten = std::move(waiter.self_);
  Waiter** at = &first_;
  Waiter* before = nullptr;
  while (*at != &waiter) {
    before = *at;
    at = &before->next_;
  }
  *at = waiter.next_;
  if (last_ == &waiter) last_ = before;
}

}  // namespace esdp::sockets
