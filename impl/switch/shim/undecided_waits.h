#ifndef ESDP_IMPL_SWITCH_SHIM_UNDECIDED_WAITS_H_
#define ESDP_IMPL_SWITCH_SHIM_UNDECIDED_WAITS_H_

#include <atomic>
#include <cstdint>
#include <optional>

namespace esdp::switching {

// Threads that wait for something to come on a TCP socket while it is not decided what its client speaks: in recv,
// poll, select. What comes ends these waits, but not once a stream pair is under the number, so who finds a request of
// SDP lets them end first.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   -
class UndecidedWaits {
 public:
  // Of a place of the table: which of its connections this one is.
  explicit UndecidedWaits(uint32_t use = 0) : word_(uint64_t{use} << kUseShift) {}
  uint32_t use() const { return static_cast<uint32_t>(word_.load() >> kUseShift); }

  // One begins; the use is for its end. Nothing: it is being decided.
  std::optional<uint32_t> Begin() {
    uint64_t word = word_.load();
    do {
      if ((word & kDecided) != 0) return std::nullopt;
    } while (!word_.compare_exchange_weak(word, word + 1));
    return static_cast<uint32_t>(word >> kUseShift);
  }
  // Of another use, or of a parent of this process, it is none.
  void End(uint32_t use) {
    uint64_t word = word_.load();
    do {
      if (word >> kUseShift != use || (word & kCount) == 0) return;
    } while (!word_.compare_exchange_weak(word, word - 1));
  }
  bool any() const { return (word_.load() & kCount) != 0; }
  // None begins behind Decide, until it is undone.
  void Decide() { word_.fetch_or(kDecided); }
  void Undo() { word_.fetch_and(~kDecided); }
  // In a child of fork, which has one thread.
  void Forget() { word_.fetch_and(~kCount); }

 private:
  static constexpr int kUseShift = 32;
  static constexpr uint64_t kDecided = uint64_t{1} << 31, kCount = kDecided - 1;

  std::atomic<uint64_t> word_;
};

// What they wait for has come; for a second at most: one that has left its wait by a jump out of a signal handler never
// ends it, nor does one whose handler is the caller.
void LetUndecidedWaitsEnd(int number);

// The wait of a thread that is about to look for input at the number; 0 where there is no need for one.
uint64_t BeginUndecidedWait(int number);
void EndUndecidedWait(uint64_t wait);

// One such wait.
class UndecidedWait {
 public:
  explicit UndecidedWait(int number) : wait_(BeginUndecidedWait(number)) {}
  ~UndecidedWait() { EndUndecidedWait(wait_); }
  UndecidedWait(const UndecidedWait&) = delete;
  UndecidedWait& operator=(const UndecidedWait&) = delete;

 private:
  const uint64_t wait_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_UNDECIDED_WAITS_H_
