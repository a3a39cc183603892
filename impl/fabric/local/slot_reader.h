#ifndef ESDP_IMPL_FABRIC_LOCAL_SLOT_READER_H_
#define ESDP_IMPL_FABRIC_LOCAL_SLOT_READER_H_

#include <bit>
#include <cstdint>
#include <optional>

#include "impl/base/bytes.h"
#include "impl/fabric/local/layout.h"
#include "impl/fabric/local/slot_writer.h"

namespace esdp::fabric::local {

// A slot as it was when it was looked at. The payload stays where it is, in memory of the other
// end's: its content may change at any time, its place and length do not.
struct ReceivedSlot {
  SlotHeader header;
  ConstBytes payload;
};

// Takes the slots of the other end's block, which may say anything.
//
//   Owns:     what it knows of the block; not the memory.
//   Threads:  not thread-safe; the other end writes meanwhile.
//   Blocks:   never.
//   Units:    bytes, slots.
//   Errors:   broken(): a slot names bytes outside the slot and the ring, or a kind that there is
//             none.
class SlotReader {
 public:
  // Tells in `own` what has been taken.
  SlotReader(const Block& peer, Block& own) : peer_(peer), own_(own) {}

  // The next slot; nothing where there is none, or it is broken.
  std::optional<ReceivedSlot> Front();
  void Pop() { ++taken_; }

  // The slot that was popped last is still read, and so is its place in the ring: it and those
  // behind it are not given back before LetGo, which goes by the oldest of them.
  void Keep() { kept_ |= std::rotl(uint64_t{1}, PlaceOf(taken_ - 1)); }
  bool keeps() const { return kept_ != 0; }
  void LetGo() { kept_ &= ~std::rotl(uint64_t{1}, PlaceOf(free())); }

  bool HasUntold() const { return told_ != free(); }
  // Gives the slots that were popped back to the other end. Ordered before what the caller loads
  // next of the other end's block.
  void Tell();
  // Whether another slot has been published; ordered behind what the caller has stored.
  bool HasMore() const;

  bool broken() const { return broken_; }

 private:
  static_assert(kSlots == 64);

  static int PlaceOf(uint64_t slot) { return static_cast<int>(slot % kSlots); }
  // Slots of which none is read any more.
  uint64_t free() const {
    if (kept_ == 0) return taken_;
    return told_ + static_cast<uint64_t>(std::countr_zero(std::rotr(kept_, PlaceOf(told_))));
  }

  const Block& peer_;
  Block& own_;
  uint64_t taken_ = 0;
  uint64_t told_ = 0;
  uint64_t kept_ = 0;  // a bit for each place of a slot
  bool broken_ = false;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_SLOT_READER_H_
