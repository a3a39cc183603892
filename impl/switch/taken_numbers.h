#ifndef ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_
#define ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace esdp::libc {

// Which numbers of the process are asked for at all: a bit for each, so that any other goes to libc
// after a few instructions.
//
//   Owns:     the bits. Pages of it that nobody has touched cost nothing.
//   Threads:  any, also in handlers of signals.
//   Blocks:   never.
//   Units:    -
//   Errors:   numbers from kMax on are never taken.
class TakenNumbers {
 public:
  static constexpr unsigned kMax = 1u << 20;

  bool Has(int number) const {
    const auto place = static_cast<unsigned>(number);  // negative ones are beyond
    if (place >= kMax) return false;
    return (words_[place / 64].load(std::memory_order_relaxed) >> (place % 64) & 1) != 0;
  }
  // Whether any was, ever.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  void Add(int number) {
    const auto place = static_cast<unsigned>(number);
    if (place >= kMax) return;
    any_.store(true, std::memory_order_relaxed);
    unsigned end = words_end_.load(std::memory_order_relaxed);
    while (end <= place / 64 && !words_end_.compare_exchange_weak(end, place / 64 + 1)) continue;
    words_[place / 64].fetch_or(uint64_t{1} << (place % 64));
  }
  void Remove(int number) {
    const auto place = static_cast<unsigned>(number);
    if (place < kMax) words_[place / 64].fetch_and(~(uint64_t{1} << (place % 64)));
  }
  // Each that is taken, from the lowest on.
  template <typename Do>
  void ForEach(const Do& act) const {
    const unsigned end = any() ? words_end_.load(std::memory_order_relaxed) : 0;
    for (unsigned word = 0; word < end; ++word) {
      for (uint64_t bits = words_[word].load(std::memory_order_relaxed); bits != 0;
           bits &= bits - 1) {
        act(static_cast<int>(word * 64 + static_cast<unsigned>(std::countr_zero(bits))));
      }
    }
  }

 private:
  std::array<std::atomic<uint64_t>, kMax / 64> words_{};
  std::atomic<bool> any_{false};
  std::atomic<unsigned> words_end_{0};  // behind the last word that was ever used
};

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_
