#ifndef ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_
#define ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_

#include <array>
#include <atomic>
#include <cstdint>

namespace esdp::libc {

// Which numbers of the process are asked for at all: a byte for each, so that any other goes to libc
// after a few instructions.
//
//   Owns:     the bytes. Pages of them that nobody has touched cost nothing.
//   Threads:  any, also in handlers of signals.
//   Blocks:   never.
//   Units:    -
//   Errors:   numbers from kMax on are never taken.
class TakenNumbers {
 public:
  static constexpr unsigned kMax = 1u << 20;

  // The shortest question: false says nothing, since numbers from kMax on share a byte with others.
  bool IsPlain(int number) const {
    const unsigned place = static_cast<unsigned>(number) % kMax;
    return taken_[place].load(std::memory_order_relaxed) == 0;
  }
  bool Has(int number) const {
    const auto place = static_cast<unsigned>(number);  // negative ones are beyond
    return place < kMax && taken_[place].load(std::memory_order_relaxed) != 0;
  }
  // Whether any was, ever.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  void Add(int number) {
    const auto place = static_cast<unsigned>(number);
    if (place >= kMax) return;
    any_.store(true, std::memory_order_relaxed);
    unsigned end = end_.load(std::memory_order_relaxed);
    while (end <= place && !end_.compare_exchange_weak(end, place + 1)) continue;
    taken_[place].store(1);
  }
  void Remove(int number) {
    const auto place = static_cast<unsigned>(number);
    if (Has(number)) taken_[place].store(0);
  }
  // Each that is taken, from the lowest on.
  template <typename Do>
  void ForEach(const Do& act) const {
    const unsigned end = end_.load(std::memory_order_relaxed);
    for (unsigned place = 0; place < end; ++place) {
      if (Has(static_cast<int>(place))) act(static_cast<int>(place));
    }
  }

 private:
  std::array<std::atomic<uint8_t>, kMax> taken_{};
  std::atomic<bool> any_{false};
  std::atomic<unsigned> end_{0};  // behind the last one that was ever taken
};

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_
