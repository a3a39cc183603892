#ifndef ESDP_TESTS_SIM_CHECKERS_CONTENT_H_
#define ESDP_TESTS_SIM_CHECKERS_CONTENT_H_

#include <cstdint>
#include <cstring>

#include "impl/base/bytes.h"

namespace esdp::simulation {

// The bytes of one send: a function of its seed and of their place in it.
inline uint64_t ContentWord(uint64_t seed, uint64_t index) {
  uint64_t mixed = (seed + index) * 0x9e3779b97f4a7c15ull;
  mixed ^= mixed >> 32;
  return mixed * 0xd6e8feb86659fd93ull;
}

inline void FillContent(uint64_t seed, uint64_t offset, Bytes out) {
  size_t done = 0;
  while (done < out.size()) {
    const uint64_t place = offset + done;
    const uint64_t word = ContentWord(seed, place / 8);
    const size_t skip = place % 8;
    const size_t length = std::min<size_t>(8 - skip, out.size() - done);
    std::memcpy(out.data() + done, reinterpret_cast<const char*>(&word) + skip, length);
    done += length;
  }
}

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_CONTENT_H_
