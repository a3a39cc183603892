#ifndef ESDP_IMPL_BASE_DIGEST_H_
#define ESDP_IMPL_BASE_DIGEST_H_

#include <cstdint>

namespace esdp {

// A running 64-bit digest (FNV-1a over whole words) of the numbers that make up a state. It tells
// states apart in a search and histories apart in a replay; it is no protection against an
// adversary.
class Digest {
 public:
  constexpr Digest& Add(uint64_t value) {
    state_ = (state_ ^ value) * 0x100000001b3ull;
    state_ ^= state_ >> 29;  // FNV alone leaves the low bits of a word in the low bits of the state
    return *this;
  }
  constexpr uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325ull;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_DIGEST_H_
