#include "impl/base/learned_threshold.h"

#include <algorithm>
#include <bit>

namespace esdp {

LearnedThreshold::LearnedThreshold(uint64_t initial, uint64_t min)
    : min_(min), in_force_(std::clamp(initial, min, kMax)) {}

std::optional<uint32_t> LearnedThreshold::ClassOf(uint64_t bytes) {
  const auto width = static_cast<uint32_t>(std::bit_width(bytes));
  if (width <= kClassMin || width > kClassMin + kClasses) return std::nullopt;
  return width - 1 - kClassMin;
}

bool LearnedThreshold::known(const Class& learned) {
  return std::min(learned.copied.samples, learned.zero_copy.samples) >= kSamplesMin;
}

uint32_t LearnedThreshold::Interval(const Class& learned, bool zero_copy, uint32_t row) {
  if (!known(learned)) return kProbeEvery;
  const Cost& other = zero_copy ? learned.zero_copy : learned.copied;
  const Cost& own = zero_copy ? learned.copied : learned.zero_copy;
  const double dearer = static_cast<double>(std::max<int64_t>(other.ns, 1)) /
                        static_cast<double>(std::max<int64_t>(own.ns, 1));
  return static_cast<uint32_t>(
      std::clamp<double>(kProbeShare * row * dearer, kProbeEvery, kProbeSeldom));
}

uint64_t LearnedThreshold::Begin(uint64_t bytes, const Rows& rows) {
  const std::optional<uint32_t> found = ClassOf(bytes);
  if (!found) return in_force_;
  Class& learned = classes_[*found];
  if (learned.left == 0) {
    const bool other = bytes < in_force_;  // zero-copy, then
    const uint32_t row = other ? rows.zero_copy : rows.copied;
    // In between, what goes the own way has to show what that costs.
    const uint32_t own_row = other ? rows.copied : rows.zero_copy;
    if (++learned.since_probe < std::max(Interval(learned, other, row), 2 * own_row)) {
      return in_force_;
    }
    learned.since_probe = 0;
    learned.left = row;
    learned.looks_zero_copy = other;
  }
  --learned.left;
  return learned.looks_zero_copy ? bytes : bytes + 1;
}

void LearnedThreshold::Add(Cost& cost, int64_t ns) {
  cost.ns = cost.samples == 0 ? ns : cost.ns + (ns - cost.ns) / 4;
  if (cost.samples < kSamplesMin) ++cost.samples;
}

void LearnedThreshold::Learn(uint64_t bytes, Duration cost, bool zero_copy) {
  const std::optional<uint32_t> found = ClassOf(bytes);
  if (!found) return;
  Class& learned = classes_[*found];
  const uint64_t least = uint64_t{1} << (kClassMin + *found);
  const double share = static_cast<double>(least) / static_cast<double>(bytes);
  Add(zero_copy ? learned.zero_copy : learned.copied,
      static_cast<int64_t>(static_cast<double>(cost.count()) * share));
  if (!known(learned)) return;
  // A little of difference, so that equal costs do not move it to and fro.
  const int64_t margin = learned.copied.ns / 64;
  if (learned.zero_copy.ns < learned.copied.ns - margin) {
    in_force_ = std::clamp(std::min(in_force_, least), min_, kMax);
  } else if (learned.zero_copy.ns > learned.copied.ns + margin) {
    in_force_ = std::clamp(std::max(in_force_, 2 * least), min_, kMax);
  }
}

void LearnedThreshold::AddTo(Digest& digest) const {
  digest.Add(in_force_);
  for (const Class& learned : classes_) {
    digest.Add(learned.since_probe).Add(learned.left).Add(learned.looks_zero_copy);
    digest.Add(static_cast<uint64_t>(learned.copied.ns)).Add(learned.copied.samples);
    digest.Add(static_cast<uint64_t>(learned.zero_copy.ns)).Add(learned.zero_copy.samples);
  }
}

}  // namespace esdp
