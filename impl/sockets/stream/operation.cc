#include "impl/sockets/stream/operation.h"

#include <algorithm>
#include <utility>

namespace esdp::sockets {

Operation* OperationTable::Take(EventType type, SocketId socket,
                                const std::shared_ptr<QueueState>& queue, uint32_t& capacity) {
  const std::lock_guard lock(mutex_);
  if (live_ >= max_) return nullptr;
  if (first_free_ == kNoSlot) {
    capacity = static_cast<uint32_t>(blocks_.size() + 1) * kBlock;
    return nullptr;
  }
  Slot& slot = At(first_free_);
  first_free_ = slot.next_free;
  slot.used = true;
  slot.generation = (slot.generation + 1) & 0x7fffffff;
  slot.number = ++posted_;
  ++live_;
  const uint64_t id = (uint64_t{slot.generation} << 32) | (slot.index + 1);
  slot.operation.id = OpId{id};
  slot.operation.transfer.tag.store(id, std::memory_order_relaxed);
  slot.operation.type = type;
  slot.operation.socket = socket;
  slot.operation.queue = queue;
  return &slot.operation;
}

void OperationTable::GrowTo(uint32_t capacity) {
  auto block = std::make_unique<Slot[]>(kBlock);
  // Which slot a post gets is a matter of chance: none is to be the first to allocate later.
  for (uint32_t i = 0; i < kBlock; ++i) {
    block[i].operation.transfer.operation = &block[i].operation;
    block[i].operation.memory.reserve(1);
    block[i].operation.regions.reserve(1);
  }
  const std::lock_guard lock(mutex_);
  const auto base = static_cast<uint32_t>(blocks_.size()) * kBlock;
  if (base >= capacity) return;
  blocks_.push_back(std::move(block));
  for (uint32_t i = kBlock; i-- > 0;) {
    Slot& slot = blocks_.back()[i];
    slot.index = base + i;
    slot.next_free = std::exchange(first_free_, slot.index);
  }
}

std::shared_ptr<FileOperation> OperationTable::TakeFile(Operation& operation) {
  if (operation.file == nullptr) [[likely]]
    return nullptr;
  const std::lock_guard lock(mutex_);
  return std::move(operation.file);
}

std::shared_ptr<QueueState> OperationTable::Free(Operation& operation) {
  if constexpr (kReceivesAreWatched) ranges_.Release(operation.id);
  const auto index = static_cast<uint32_t>(static_cast<uint64_t>(operation.id) & 0xffffffff) - 1;
  // What it holds is let go of outside the lock: the last holder of a region has work to do. With
  // and List do not look at what goes here before the lock.
  operation.regions.clear();
  operation.memory.clear();
  const std::lock_guard lock(mutex_);
  At(index).used = false;
  operation.bounce.reset();
  operation.transfer.awaits_urgent = false;
  operation.transfer.urgent = false;
  operation.has_alarm = false;
  operation.type = EventType::kNone;
  operation.id = OpId::kNone;
  At(index).next_free = std::exchange(first_free_, index);
  --live_;
  return std::move(operation.queue);
}

Operation* OperationTable::FindLocked(OpId id) {
  const auto value = static_cast<uint64_t>(id);
  const auto index = static_cast<uint32_t>(value & 0xffffffff);
  if (index == 0 || index > blocks_.size() * kBlock) return nullptr;
  Slot& slot = At(index - 1);
  return slot.used && slot.operation.id == id ? &slot.operation : nullptr;
}

Operation* OperationTable::Oldest() {
  const std::lock_guard lock(mutex_);
  Slot* oldest = nullptr;
  for (uint32_t i = 0; live_ > 0 && i < blocks_.size() * kBlock; ++i) {
    Slot& slot = At(i);
    if (slot.used && (oldest == nullptr || slot.number < oldest->number)) oldest = &slot;
  }
  return oldest == nullptr ? nullptr : &oldest->operation;
}

std::vector<OpId> OperationTable::InOrder(std::vector<std::pair<uint64_t, OpId>> found) {
  std::ranges::sort(found);
  std::vector<OpId> ids;
  ids.reserve(found.size());
  for (const auto& [number, id] : found) ids.push_back(id);
  return ids;
}

uint32_t OperationTable::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

uint64_t OperationTable::posted() const {
  const std::lock_guard lock(mutex_);
  return posted_ + prompt_.load(std::memory_order_relaxed);
}

}  // namespace esdp::sockets
