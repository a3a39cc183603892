#ifndef ESDP_IMPL_BASE_LEARNED_THRESHOLD_H_
#define ESDP_IMPL_BASE_LEARNED_THRESHOLD_H_

#include <array>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/time.h"

namespace esdp {

// From which size on zero-copy is worth what it costs besides: costs are kept for each power of two
// and path, with the older ones counting less and less. Now and then an operation is to go the other
// way, so that both paths stay known. Deterministic; no clock.
//
//   Owns:     nothing.
//   Threads:  one at a time.
//   Blocks:   never.
//   Units:    bytes; costs in time, of whole operations.
//   Errors:   –
class LearnedThreshold {
 public:
  static constexpr uint64_t kMax = 4 * 1024 * 1024;
  static constexpr uint32_t kProbeEvery = 32;  // operations of one size class

  // `initial` is in force until something has been learned; never less than `min`, nor more than
  // kMax.
  LearnedThreshold(uint64_t initial, uint64_t min);

  uint64_t in_force() const { return in_force_; }
  // Whether operations of that size teach anything: 4 KiB to 8 MiB.
  static bool Covers(uint64_t bytes) { return ClassOf(bytes).has_value(); }
  // One begins; the threshold for it.
  uint64_t Begin(uint64_t bytes);
  // One has cost so much.
  void Learn(uint64_t bytes, Duration cost, bool zero_copy);

  void AddTo(Digest& digest) const;

 private:
  static constexpr uint32_t kClassMin = 12;  // 4 KiB
  static constexpr uint32_t kClasses = 11;   // up to 8 MiB
  static constexpr uint32_t kSamplesMin = 2;

  struct Cost {
    int64_t ns = 0;  // of the class's smallest operation
    uint32_t samples = 0;
  };
  struct Class {
    Cost copied, zero_copy;
    uint32_t operations = 0;
  };

  static std::optional<uint32_t> ClassOf(uint64_t bytes);
  static void Add(Cost& cost, int64_t ns);

  uint64_t min_;
  uint64_t in_force_;
  std::array<Class, kClasses> classes_{};
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_LEARNED_THRESHOLD_H_
