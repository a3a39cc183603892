#ifndef ESDP_IMPL_FABRIC_SIM_RANDOM_H_
#define ESDP_IMPL_FABRIC_SIM_RANDOM_H_

#include <cstdint>

namespace esdp::fabric::sim {

// The world's only source of chance (SplitMix64). The same seed draws the same numbers on every
// machine, which the standard library's distributions do not promise.
class Random {
 public:
  explicit constexpr Random(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() {
    uint64_t mixed = (state_ += 0x9e3779b97f4a7c15ull);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    return mixed ^ (mixed >> 31);
  }

  // From `low` to `high`, both included. The slight bias of the modulus does not matter here.
  constexpr uint64_t Between(uint64_t low, uint64_t high) {
    const uint64_t width = high - low + 1;
    return width == 0 ? Next() : low + Next() % width;
  }

 private:
  uint64_t state_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_RANDOM_H_
