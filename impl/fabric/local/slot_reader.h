#ifndef ESDP_IMPL_FABRIC_LOCAL_SLOT_READER_H_
#define ESDP_IMPL_FABRIC_LOCAL_SLOT_READER_H_

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

  bool HasUntold() const { return told_ != taken_; }
  // Gives the slots that were popped back to the other end. Ordered before what the caller loads
  // next of the other end's block.
  void Tell();
  // Whether another slot has been published; ordered behind what the caller has stored.
  bool HasMore() const;

  bool broken() const { return broken_; }

 private:
  const Block& peer_;
  Block& own_;
  uint64_t taken_ = 0;
  uint64_t told_ = 0;
  bool broken_ = false;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_SLOT_READER_H_
