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
  bool IsPlain(int number) const { return !IsTaken(static_cast<unsigned>(number) % kMax); }
  bool Has(int number) const {
    const auto place = static_cast<unsigned>(number);  // negative ones are beyond
    return place < kMax && IsTaken(place);
  }
  // Whether any was, ever.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  void Add(int number) {
    const auto place = static_cast<unsigned>(number);
    if (place >= kMax) return;
    any_.store(true, std::memory_order_relaxed);
    unsigned end = end_.load(std::memory_order_relaxed);
    while (end <= place && !end_.compare_exchange_weak(end, place + 1)) continue;
    Set(place, 1);
  }
  void Remove(int number) {
    const auto place = static_cast<unsigned>(number);
    if (Has(number)) Set(place, 0);
  }
  // Each that is taken, from the lowest on.
  template <typename Do>
  void ForEach(const Do& act) const {
    const unsigned end = end_.load(std::memory_order_relaxed);
    for (unsigned place = 0; place < end; ++place) {
      if (IsTaken(place)) act(static_cast<int>(place));
    }
  }

 private:
  bool IsTaken(unsigned place) const {
    return std::atomic_ref(taken_[place]).load(std::memory_order_relaxed) != 0;
  }
  void Set(unsigned place, uint8_t taken) { std::atomic_ref(taken_[place]).store(taken); }

  mutable std::array<uint8_t, kMax> taken_{};  // each by an atomic_ref
  std::atomic<bool> any_{false};
  std::atomic<unsigned> end_{0};  // behind the last one that was ever taken
};

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_TAKEN_NUMBERS_H_
