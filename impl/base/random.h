#ifndef ESDP_IMPL_BASE_RANDOM_H_
#define ESDP_IMPL_BASE_RANDOM_H_

#include <array>
#include <bit>
#include <cstdint>

namespace esdp {

// A seeded generator (xoshiro256**, its state filled by splitmix64): the same seed gives the same
// numbers on every machine. Its output can be predicted from its output: for what a peer must not
// guess, take secure_random.h. It is a uniform random bit generator for <random> and std::shuffle;
// those differ between standard libraries, so whatever must replay uses Below and Chance. A copy
// goes on from the same place. Not thread-safe.
class Random {
 public:
  using result_type = uint64_t;

  explicit constexpr Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix(seed);
  }

  constexpr uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform over 0 .. bound - 1; 0 when bound is 0.
  constexpr uint64_t Below(uint64_t bound) {
    if (bound == 0) return 0;
    const uint64_t unfair =
        (0 - bound) % bound;  // so many of the lowest numbers would make a remainder likelier
    uint64_t value = Next();
    while (value < unfair) value = Next();
    return value % bound;
  }

  // Uniform over low .. high, both included; low when high is below it.
  constexpr uint64_t Between(uint64_t low, uint64_t high) {
    if (high <= low) return low;
    const uint64_t span = high - low;
    return span == UINT64_MAX ? Next() : low + Below(span + 1);
  }

  // True `times` out of `of` on average.
  constexpr bool Chance(uint64_t times, uint64_t of) { return Below(of) < times; }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  constexpr result_type operator()() { return Next(); }

 private:
  static constexpr uint64_t SplitMix(uint64_t& seed) {
    seed += 0x9e3779b97f4a7c15ull;
    uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    return mixed ^ (mixed >> 31);
  }

  std::array<uint64_t, 4> state_{};
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_RANDOM_H_
