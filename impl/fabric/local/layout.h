#ifndef ESDP_IMPL_FABRIC_LOCAL_LAYOUT_H_
#define ESDP_IMPL_FABRIC_LOCAL_LAYOUT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "impl/fabric/local/windows.h"

// What one end of a queue pair writes and the other reads: a block of shared memory that has one
// writer. The reader maps it read-only, and takes nothing of it for granted: every word is loaded
// once, checked, and then used.

namespace esdp::fabric::local {

inline constexpr uint64_t kLayoutVersion = 5;

inline constexpr uint32_t kSlots = 64;
inline constexpr uint32_t kSlotBytes = 128;
inline constexpr uint32_t kRingBytes = 256 * 1024;
// What does not fit a slot lies in the ring side by side, up to a message of 64 KiB with a header:
// so it can be lent. What is longer goes in pieces: large enough to copy well, and several fit the
// ring, so that one end fills while the other takes.
inline constexpr uint32_t kPieceMax = 68 * 1024;
inline constexpr uint32_t kMessageBytesBest = 64 * 1024 + 16;
inline constexpr uint32_t kPieceOfLonger = 32 * 1024;

enum class SlotKind : uint8_t {
  kSend = 1,     // the first piece of a message: `length` of the whole
  kSendMore,     // the next pieces
  kWrite,        // RDMA Write of the piece: key, address
  kReadRequest,  // RDMA Read: key, address, length
  kReadData,     // the next piece of the oldest read that is not answered
  kWriteFrom,    // RDMA Write of `length` bytes that the reader takes by itself: key, address, and
                 // where they lie (WriteSource); taken once it has
};
inline constexpr uint8_t kInRing = 1;       // the piece lies in the ring, not in the slot
inline constexpr uint8_t kInvalidates = 2;  // kSend: `key` is one of the reader's windows

// The first word is written last. It holds the lap, in which the slot is used for the n-th time,
// so that the reader needs no index and has to clear nothing.
//   word 0: lap (32 bits), kind (8), flags (8), bytes in the slot (16)
//   word 1: length (32), key (32)
//   word 2: address
//   from word 3 on: the bytes, or one word: place in the ring (32), bytes there (32)
struct Slot {
  std::array<std::atomic<uint64_t>, kSlotBytes / 8> words;
};
inline constexpr uint32_t kPayloadWord = 3;
inline constexpr uint32_t kInlineMax = kSlotBytes - 8 * kPayloadWord;

// How an end came to its end, for the other.
enum class EndReason : uint8_t {
  kNone,      // it has not
  kClosed,    // in order: what was sent before is in the block
  kReset,     // broken off
  kAccess,    // the reader asked for memory that it was not shown
  kProtocol,  // the reader broke a rule
};

// Of the word `armed`: a wake-up by any channel between the two fabrics will do.
inline constexpr uint64_t kAnyBell = uint64_t{1} << 63;

struct Block {
  // Read where the other end has published something, or taken something; changes seldom.
  std::atomic<uint64_t> armed;     // odd: this end sleeps, or may, and wants to be woken
  std::atomic<uint64_t> starved;   // not 0: it has something that its ring had no room for
  std::atomic<uint64_t> end;       // EndReason (8 bits), number of the refused read (56)
  std::atomic<uint64_t> messages;  // of those with files: has sent so many, or is about to
  alignas(128) std::atomic<uint64_t> taken;  // slots of the other end's block
  alignas(128) std::atomic<uint64_t> published;
  // What it has read in the memory of the other end's process, at the address that it was told.
  alignas(128) std::array<std::atomic<uint64_t>, 2> proof;
  alignas(128) WindowTable windows;  // only where the other end has given that proof
  alignas(4096) std::array<Slot, kSlots> slots;
  alignas(4096) std::array<std::byte, kRingBytes> ring;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(Slot) == kSlotBytes);
static_assert(sizeof(Block) == 4096 + kSlots * kSlotBytes + kRingBytes);

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_LAYOUT_H_
