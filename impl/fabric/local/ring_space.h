#ifndef ESDP_IMPL_FABRIC_LOCAL_RING_SPACE_H_
#define ESDP_IMPL_FABRIC_LOCAL_RING_SPACE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

namespace esdp::fabric::local {

// Which bytes of a ring are in use. Pieces do not wrap; they are given back in the order in which
// they were taken. With everything given back it starts at 0 again, so that little traffic stays in
// few pages.
//
//   Owns:     numbers; not the memory.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Find: nothing where there is no room.
class RingSpace {
 public:
  static constexpr uint32_t kLine = 64;  // where pieces begin

  // One word. The bytes of a piece are still on their way to memory when it is stored and loaded
  // again: a load of what was stored in parts would wait for them.
  class Piece {
   public:
    Piece() = default;
    Piece(uint32_t place, uint32_t bytes, uint32_t skipped)
        : word_(place | uint64_t{bytes} << kBits | uint64_t{skipped} << 2 * kBits) {}

    uint32_t place() const { return Part(0); }
    uint32_t bytes() const { return Part(1); }
    uint32_t skipped() const { return Part(2); }  // before it, at the ring's end

   private:
    uint32_t Part(int i) const {
      return static_cast<uint32_t>(word_ >> i * kBits) & ((1u << kBits) - 1);
    }

    uint64_t word_ = 0;
  };

  // `size`: a multiple of kLine, below 2^kBits.
  explicit RingSpace(uint32_t size) : size_(size) {}

  uint32_t used() const { return used_; }

  // Where the next piece of so many bytes would lie, all side by side.
  std::optional<Piece> Find(uint32_t bytes) const {
    if (bytes == 0) return Piece();
    if (used_ == 0) return bytes <= size_ ? std::optional(Piece(0, bytes, 0)) : std::nullopt;
    const bool wrapped = end_ <= begin_;
    const uint32_t here = (wrapped ? begin_ : size_) - end_;
    if (here >= bytes) return Piece(end_, bytes, 0);
    if (wrapped || begin_ < bytes) return std::nullopt;
    return Piece(0, bytes, size_ - end_);
  }

  // What Find has said last.
  void Take(Piece piece) {
    if (piece.bytes() == 0) return;
    if (used_ == 0) begin_ = 0;
    end_ = piece.place() + Rounded(piece.bytes());
    used_ += piece.skipped() + Rounded(piece.bytes());
  }

  // The oldest piece that was taken and not given back.
  void GiveBack(Piece piece) {
    if (piece.bytes() == 0) return;
    used_ -= piece.skipped() + Rounded(piece.bytes());
    begin_ = piece.place() + Rounded(piece.bytes());
  }

 private:
  static constexpr int kBits = 20;

  static uint32_t Rounded(uint32_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  uint32_t size_;
  uint32_t begin_ = 0;  // of what is in use
  uint32_t end_ = 0;
  uint32_t used_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_RING_SPACE_H_
