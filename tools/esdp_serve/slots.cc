#include "tools/esdp_serve/slots.h"

#include <utility>

namespace esdp_serve {

absl::StatusOr<Slots> Slots::Make(esdp::Context& context, uint32_t count) {
  Slots slots;
  slots.context_ = &context;
  auto blocks = context.Allocate(count * kBlockBytes);
  if (!blocks.ok()) return blocks.status();
  slots.blocks_ = *std::move(blocks);
  auto zeros = context.Allocate(esdp_files::kChunkBytes);
  if (!zeros.ok()) return zeros.status();
  slots.zeros_ = *std::move(zeros);
  slots.chunks_.resize(count);
  for (uint32_t i = count; i > 0; --i) slots.free_.push_back(i - 1);
  return slots;
}

uint32_t Slots::Take() {
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

std::span<std::byte> Slots::block(uint32_t slot) const {
  return {blocks_.info().base + slot * kBlockBytes, kBlockBytes};
}

// The ranges are ours and lie inside their regions.
esdp::Slice Slots::BlockSlice(uint32_t slot, uint64_t offset, uint64_t length) const {
  return blocks_.slice(slot * kBlockBytes + offset, length).value_or(esdp::Slice());
}

absl::Status Slots::MakeChunkRoom(uint32_t slot) {
  if (chunks_[slot].valid()) return absl::OkStatus();
  auto room = context_->Allocate(kChunkRoom);
  if (!room.ok()) return room.status();
  chunks_[slot] = *std::move(room);
  return absl::OkStatus();
}

std::span<std::byte> Slots::chunk(uint32_t slot) const {
  return {chunks_[slot].info().base, kChunkRoom};
}

esdp::Slice Slots::ChunkSlice(uint32_t slot, uint64_t length) const {
  return chunks_[slot].slice(0, length).value_or(esdp::Slice());
}

esdp::Slice Slots::Zeros(uint64_t length) const {
  return zeros_.slice(0, length).value_or(esdp::Slice());
}

}  // namespace esdp_serve
