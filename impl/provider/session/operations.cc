#include "impl/provider/session/operations.h"

#include <algorithm>
#include <span>

namespace esdp::provider {

std::optional<ResolvedRange> Resolve(Operation& operation, const sdp::OperationRange& range,
                                     uint8_t place) {
  if (operation.transfer == nullptr) return std::nullopt;
  const std::span<const Piece> pieces = operation.transfer->pieces;
  if (range.offset < operation.piece_begin) {
    operation.piece = 0;
    operation.piece_begin = 0;
  }
  while (operation.piece < pieces.size() &&
         range.offset - operation.piece_begin >= pieces[operation.piece].length) {
    operation.piece_begin += pieces[operation.piece].length;
    ++operation.piece;
  }
  if (operation.piece == pieces.size()) return std::nullopt;
  const Piece& piece = pieces[operation.piece];
  const uint64_t inside = range.offset - operation.piece_begin;
  const uint64_t offset = piece.offset + inside;
  if (range.length > piece.length - inside ||
      piece.region->ContiguousFrom(offset, range.length) != range.length) {
    return std::nullopt;
  }
  return ResolvedRange{piece.region, offset, piece.region->Entry(place, offset, range.length)};
}

void OperationTable::Reserve(size_t operations) {
  if (operations > slots_.capacity()) slots_.reserve(std::max(operations, 2 * slots_.capacity()));
}

std::optional<sdp::OperationId> OperationTable::Insert(const Operation& operation) {
  uint32_t index = first_free_;
  if (index != kNoSlot) {
    first_free_ = slots_[index].next_free;
  } else {
    if (slots_.size() > kSlotMask) return std::nullopt;
    index = static_cast<uint32_t>(slots_.size());
    if (slots_.size() == slots_.capacity())
      slots_.reserve(std::max(kSlotsFirst, 2 * slots_.size()));
    slots_.emplace_back();
  }
  Slot& slot = slots_[index];
  slot.operation = operation;
  slot.used = true;
  ++size_;
  return sdp::OperationId{(slot.generation << kSlotBits) | index};
}

void OperationTable::Erase(sdp::OperationId id) {
  if (Find(id) == nullptr) return;
  const uint32_t index = static_cast<uint32_t>(id) & kSlotMask;
  Slot& slot = slots_[index];
  slot.used = false;
  slot.generation =
      (slot.generation & kGenerationMask) == kGenerationMask ? 1 : slot.generation + 1;
  slot.next_free = first_free_;
  first_free_ = index;
  --size_;
}

}  // namespace esdp::provider
