#include "impl/fabric/local/slot_writer.h"

#include <algorithm>

namespace esdp::fabric::local {

std::optional<Bytes> SlotWriter::Reserve(uint32_t most, uint32_t head) {
  if (next_ - taken_ == kSlots && (!Refresh() || next_ - taken_ == kSlots)) return std::nullopt;
  reserved_ = {};
  if (most <= kInlineMax) {
    auto* const at = reinterpret_cast<std::byte*>(&own_.slots[next_ % kSlots].words[kPayloadWord]);
    return Bytes(at, most);
  }
  constexpr uint32_t kLine = RingSpace::kLine;
  lead_ = (kLine - head % kLine) % kLine;
  const uint32_t bytes = lead_ + (most <= kPieceMax ? most : kPieceOfLonger);
  std::optional<RingSpace::Piece> piece = space_.Find(bytes);
  if (!piece && Refresh()) piece = space_.Find(bytes);
  if (!piece) return std::nullopt;
  reserved_ = *piece;
  return Bytes(&own_.ring[piece->place() + lead_], bytes - lead_);
}

void SlotWriter::Put(const SlotHeader& header, uint32_t bytes) {
  Slot& slot = own_.slots[next_ % kSlots];
  const uint32_t lap = static_cast<uint32_t>(next_ / kSlots + 1);
  uint64_t flags = header.flags;
  uint64_t inline_bytes = bytes;
  if (reserved_.bytes() != 0) {
    flags |= kInRing;
    inline_bytes = 0;
    slot.words[kPayloadWord].store((reserved_.place() + lead_) | uint64_t{bytes} << 32,
                                   std::memory_order_relaxed);
  }
  slot.words[1].store(header.length | uint64_t{header.key} << 32, std::memory_order_relaxed);
  slot.words[2].store(header.address, std::memory_order_relaxed);
  slot.words[0].store(
      lap | static_cast<uint64_t>(header.kind) << 32 | flags << 40 | inline_bytes << 48,
      std::memory_order_release);
  space_.Take(reserved_);
  pieces_[next_ % kSlots] = reserved_;
  ++next_;
}

void SlotWriter::Publish() {
  published_ = next_;
  own_.published.store(next_, std::memory_order_seq_cst);
}

bool SlotWriter::Refresh() {
  if (broken_) return false;
  const uint64_t taken = peer_.taken.load(std::memory_order_seq_cst);
  if (taken - taken_ > next_ - taken_) {
    broken_ = true;
    return false;
  }
  const bool moved = taken != taken_;
  for (; taken_ != taken; ++taken_) space_.GiveBack(pieces_[taken_ % kSlots]);
  return moved;
}

}  // namespace esdp::fabric::local
