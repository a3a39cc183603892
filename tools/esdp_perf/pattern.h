#ifndef ESDP_TOOLS_ESDP_PERF_PATTERN_H_
#define ESDP_TOOLS_ESDP_PERF_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// The content of a verified stream: every byte follows from the seed, the connection's number and
// the byte's place in the stream, so that lost, doubled, swapped or strayed bytes are all found.

namespace esdp_perf {

// Eight bytes of the stream, from SplitMix64 as its author published it.
constexpr uint64_t PatternWord(uint64_t seed, uint64_t connection, uint64_t index) {
  uint64_t z = seed + connection * 0xd1342543de82ef95u + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Calls visit(i, byte) for every i < length with the stream's byte at `position` + i, until visit
// returns false.
template <typename Visit>
constexpr void EachPatternByte(uint64_t seed, uint64_t connection, uint64_t position, size_t length,
                               Visit visit) {
  for (size_t i = 0; i < length;) {
    const uint64_t at = position + i;
    uint64_t word = PatternWord(seed, connection, at / 8) >> (at % 8 * 8);
    for (uint64_t left = 8 - at % 8; left > 0 && i < length; --left, ++i, word >>= 8) {
      if (!visit(i, static_cast<std::byte>(word & 0xff))) return;
    }
  }
}

inline void FillPattern(uint64_t seed, uint64_t connection, uint64_t position,
                        std::span<std::byte> out) {
  EachPatternByte(seed, connection, position, out.size(), [&](size_t i, std::byte byte) {
    out[i] = byte;
    return true;
  });
}

// The stream position of the first byte that is not the pattern's, if there is one.
inline std::optional<uint64_t> FindMismatch(uint64_t seed, uint64_t connection, uint64_t position,
                                            std::span<const std::byte> data) {
  std::optional<uint64_t> wrong;
  EachPatternByte(seed, connection, position, data.size(), [&](size_t i, std::byte byte) {
    if (data[i] == byte) return true;
    wrong = position + i;
    return false;
  });
  return wrong;
}

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_PATTERN_H_
