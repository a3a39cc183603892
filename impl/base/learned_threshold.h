#ifndef ESDP_IMPL_BASE_LEARNED_THRESHOLD_H_
#define ESDP_IMPL_BASE_LEARNED_THRESHOLD_H_

#include <array>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/time.h"

namespace esdp {

// From which size on zero-copy is worth what it costs besides: costs are kept for each power of two
// and path, with the older ones counting less and less. Now and then some operations in a row are to
// go the other way, so that both paths stay known; the dearer that has been, the more seldom, so
// that looking costs little. Deterministic; no clock.
//
//   Owns:     nothing.
//   Threads:  one at a time.
//   Blocks:   never.
//   Units:    bytes; costs in time, of whole operations.
//   Errors:   –
class LearnedThreshold {
 public:
  static constexpr uint64_t kMax = 4 * 1024 * 1024;
  // Operations of one size class between two looks at the other way: so many at least, and at most.
  static constexpr uint32_t kProbeEvery = 32;
  static constexpr uint32_t kProbeSeldom = 16 * 1024;

  // How many operations in a row one way tell what it costs.
  struct Rows {
    uint32_t copied = 1;
    uint32_t zero_copy = 1;
  };

  // `initial` is in force until something has been learned; never less than `min`, nor more than
  // kMax.
  LearnedThreshold(uint64_t initial, uint64_t min);

  uint64_t in_force() const { return in_force_; }
  // Whether operations of that size teach anything: 4 KiB to 8 MiB.
  static bool Covers(uint64_t bytes) { return ClassOf(bytes).has_value(); }
  // Whether both belong to one class; of sizes that are covered.
  static bool AreAlike(uint64_t one, uint64_t other) { return ClassOf(one) == ClassOf(other); }
  // One begins; the threshold for it.
  uint64_t Begin(uint64_t bytes, const Rows& rows);
  uint64_t Begin(uint64_t bytes) { return Begin(bytes, {}); }
  // One has cost so much.
  void Learn(uint64_t bytes, Duration cost, bool zero_copy);

  void AddTo(Digest& digest) const;

 private:
  static constexpr uint32_t kClassMin = 12;  // 4 KiB
  static constexpr uint32_t kClasses = 11;   // up to 8 MiB
  static constexpr uint32_t kSamplesMin = 2;
  // What is spent on looks, of all time: one part of so many.
  static constexpr double kProbeShare = 128;

  struct Cost {
    int64_t ns = 0;  // of the class's smallest operation
    uint32_t samples = 0;
  };
  struct Class {
    Cost copied, zero_copy;
    uint32_t since_probe = 0;  // operations
    uint32_t left = 0;         // of the row that looks
    bool looks_zero_copy = false;
  };

  static std::optional<uint32_t> ClassOf(uint64_t bytes);
  static void Add(Cost& cost, int64_t ns);
  static bool known(const Class& learned);
  // Operations from one look to the next, which takes a row of so many.
  static uint32_t Interval(const Class& learned, bool zero_copy, uint32_t row);

  uint64_t min_;
  uint64_t in_force_;
  std::array<Class, kClasses> classes_{};
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_LEARNED_THRESHOLD_H_
