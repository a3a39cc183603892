#ifndef ESDP_TOOLS_ESDP_PERF_HISTOGRAM_H_
#define ESDP_TOOLS_ESDP_PERF_HISTOGRAM_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace esdp_perf {

// Counts of durations in nanoseconds, in a fixed table: exact below 128, then 64 steps to each
// power of two, so that a percentile is at most 1/64 too low. It never allocates.
class Histogram {
 public:
  void Record(uint64_t nanoseconds) {
    ++counts_[IndexOf(nanoseconds)];
    if (total_ == 0 || nanoseconds < least_) least_ = nanoseconds;
    if (nanoseconds > most_) most_ = nanoseconds;
    ++total_;
  }

  uint64_t count() const { return total_; }
  uint64_t least() const { return least_; }
  uint64_t most() const { return most_; }

  // The value that `share` (0..1) of the samples do not exceed; 0 where there are none.
  uint64_t Percentile(double share) const {
    const double wanted = share * static_cast<double>(total_);
    uint64_t seen = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (counts_[i] != 0 && static_cast<double>(seen) >= wanted) return Clamp(ValueOf(i));
    }
    return most_;
  }

 private:
  static constexpr uint64_t kSteps = 64;
  static constexpr size_t kBuckets = kSteps * 60;

  // Two ranges of 64 values are exact; from there each further power of two has 64 buckets.
  static size_t IndexOf(uint64_t value) {
    if (value < 2 * kSteps) return static_cast<size_t>(value);
    const auto shift = static_cast<uint64_t>(std::bit_width(value)) - 7;
    return static_cast<size_t>(shift * kSteps + (value >> shift));
  }
  static uint64_t ValueOf(size_t index) {
    if (index < 2 * kSteps) return index;
    const uint64_t shift = index / kSteps - 1;
    return (index - shift * kSteps) << shift;
  }
  uint64_t Clamp(uint64_t value) const { return value < least_ ? least_ : value; }

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t total_ = 0, least_ = 0, most_ = 0;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_HISTOGRAM_H_
