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
//   Errors:   Take: nothing where there is no room.
class RingSpace {
 public:
  struct Piece {
    uint32_t place = 0;
    uint32_t bytes = 0;
    uint32_t skipped = 0;  // before it, at the ring's end
  };

  explicit RingSpace(uint32_t size) : size_(size) {}

  uint32_t used() const { return used_; }

  // All of `bytes`, side by side.
  std::optional<Piece> Take(uint32_t bytes) {
    if (bytes == 0) return Piece{};
    if (used_ == 0) begin_ = end_ = 0;
    const bool wrapped = used_ != 0 && end_ <= begin_;
    const uint32_t here = (wrapped ? begin_ : size_) - end_;
    if (here >= bytes) return Use({.place = end_, .bytes = bytes});
    if (wrapped || begin_ < bytes) return std::nullopt;
    return Use({.bytes = bytes, .skipped = size_ - end_});
  }

  // The oldest piece that was taken and not given back.
  void GiveBack(const Piece& piece) {
    if (piece.bytes == 0) return;
    used_ -= piece.skipped + Rounded(piece.bytes);
    begin_ = piece.place + Rounded(piece.bytes);
  }

 private:
  static constexpr uint32_t kLine = 64;

  static uint32_t Rounded(uint32_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  Piece Use(const Piece& piece) {
    end_ = piece.place + Rounded(piece.bytes);
    used_ += piece.skipped + Rounded(piece.bytes);
    return piece;
  }

  uint32_t size_;       // a multiple of kLine
  uint32_t begin_ = 0;  // of what is in use
  uint32_t end_ = 0;
  uint32_t used_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_RING_SPACE_H_
