#include "impl/fabric/local/slot_reader.h"

namespace esdp::fabric::local {

std::optional<ReceivedSlot> SlotReader::Front() {
  if (taken_ - told_ == kSlots) return std::nullopt;  // whatever stands there
  const Slot& slot = peer_.slots[taken_ % kSlots];
  const uint64_t first = slot.words[0].load(std::memory_order_acquire);
  if (static_cast<uint32_t>(first) != static_cast<uint32_t>(taken_ / kSlots + 1)) {
    return std::nullopt;
  }
  const uint64_t second = slot.words[1].load(std::memory_order_relaxed);
  ReceivedSlot received;
  SlotHeader& header = received.header;
  header.kind = static_cast<SlotKind>(static_cast<uint8_t>(first >> 32));
  header.flags = static_cast<uint8_t>(first >> 40);
  header.length = static_cast<uint32_t>(second);
  header.key = static_cast<uint32_t>(second >> 32);
  header.address = slot.words[2].load(std::memory_order_relaxed);
  broken_ = header.kind < SlotKind::kSend || header.kind > SlotKind::kWriteFrom;
  if ((header.flags & kInRing) == 0) {
    const auto bytes = static_cast<uint32_t>(first >> 48);
    broken_ |= bytes > kInlineMax;
    received.payload =
        ConstBytes(reinterpret_cast<const std::byte*>(&slot.words[kPayloadWord]), bytes);
  } else {
    const uint64_t third = slot.words[kPayloadWord].load(std::memory_order_relaxed);
    const auto place = static_cast<uint32_t>(third);
    const auto bytes = static_cast<uint32_t>(third >> 32);
    broken_ |= bytes > kPieceMax || place > kRingBytes - bytes;
    if (!broken_) received.payload = ConstBytes(&peer_.ring[place], bytes);
  }
  if (broken_) return std::nullopt;
  return received;
}

// What is told alone proves nothing: who waits for what never comes would never sleep.
bool SlotReader::HasMore() const {
  if (peer_.published.load(std::memory_order_seq_cst) == taken_) return false;
  const uint64_t first = peer_.slots[taken_ % kSlots].words[0].load(std::memory_order_relaxed);
  return static_cast<uint32_t>(first) == static_cast<uint32_t>(taken_ / kSlots + 1);
}

void SlotReader::Tell() {
  told_ = free();
  own_.taken.store(told_, std::memory_order_seq_cst);
}

}  // namespace esdp::fabric::local
