#ifndef ESDP_IMPL_FABRIC_LOCAL_SLOT_WRITER_H_
#define ESDP_IMPL_FABRIC_LOCAL_SLOT_WRITER_H_

#include <array>
#include <cstdint>
#include <optional>

#include "impl/base/bytes.h"
#include "impl/fabric/local/layout.h"
#include "impl/fabric/local/ring_space.h"

namespace esdp::fabric::local {

// What a slot says, apart from its bytes.
struct SlotHeader {
  SlotKind kind = SlotKind::kSend;
  uint8_t flags = 0;
  uint32_t length = 0;
  uint32_t key = 0;
  uint64_t address = 0;
};

// Fills the slots and the ring of our block: Reserve, fill the bytes, Put; then Publish for all of
// them.
//
//   Owns:     what it knows of the block; not the memory.
//   Threads:  not thread-safe; the other end reads meanwhile.
//   Blocks:   never.
//   Units:    bytes, slots.
//   Errors:   Reserve: nothing where there is no room. broken(): the other end says that it has
//             taken what was never there.
class SlotWriter {
 public:
  // `own` has been zeroed and is nobody else's to write.
  SlotWriter(Block& own, const Block& peer) : own_(own), peer_(peer) {}

  // Room for at most `most` bytes of the next slot: for all where they are no more than kPieceMax.
  // Without Put it is as if nothing had been asked for. `head`: what follows so many bytes begins at
  // a line of the cache if it lies in the ring, since that is copied faster.
  std::optional<Bytes> Reserve(uint32_t most, uint32_t head = 0);
  // The slot with the first `bytes` of what was reserved.
  void Put(const SlotHeader& header, uint32_t bytes);

  bool HasUnpublished() const { return published_ != next_; }
  // Lets a reader that is about to sleep see that there is something. Ordered before what the
  // caller loads next of the other end's block.
  void Publish();
  // Takes back the room of what the other end has taken since; true if that is anything.
  bool Refresh();

  uint64_t put() const { return next_; }     // slots
  uint64_t taken() const { return taken_; }  // of them, as far as Refresh knows

  bool broken() const { return broken_; }

 private:
  Block& own_;
  const Block& peer_;
  RingSpace space_{kRingBytes};
  uint64_t next_ = 0;       // slots put
  uint64_t published_ = 0;  // of them, told
  uint64_t taken_ = 0;      // of them, by the other end
  bool broken_ = false;
  RingSpace::Piece reserved_;
  uint32_t lead_ = 0;  // bytes of it before the first that is used
  std::array<RingSpace::Piece, kSlots> pieces_{};
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_SLOT_WRITER_H_
