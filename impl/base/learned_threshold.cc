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

uint64_t LearnedThreshold::Begin(uint64_t bytes) {
  const std::optional<uint32_t> found = ClassOf(bytes);
  if (!found || ++classes_[*found].operations % kProbeEvery != 0) return in_force_;
  return bytes >= in_force_ ? bytes + 1 : bytes;
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
  if (std::min(learned.copied.samples, learned.zero_copy.samples) < kSamplesMin) return;
  // An eighth of difference, so that equal costs do not move it to and fro.
  const int64_t margin = learned.copied.ns / 8;
  if (learned.zero_copy.ns < learned.copied.ns - margin) {
    in_force_ = std::clamp(std::min(in_force_, least), min_, kMax);
  } else if (learned.zero_copy.ns > learned.copied.ns + margin) {
    in_force_ = std::clamp(std::max(in_force_, 2 * least), min_, kMax);
  }
}

void LearnedThreshold::AddTo(Digest& digest) const {
  digest.Add(in_force_);
  for (const Class& learned : classes_) {
    digest.Add(learned.operations);
    digest.Add(static_cast<uint64_t>(learned.copied.ns)).Add(learned.copied.samples);
    digest.Add(static_cast<uint64_t>(learned.zero_copy.ns)).Add(learned.zero_copy.samples);
  }
}

}  // namespace esdp
