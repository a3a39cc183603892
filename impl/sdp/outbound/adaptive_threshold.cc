#include "impl/sdp/outbound/adaptive_threshold.h"

#include <algorithm>
#include <bit>

namespace esdp::sdp {

AdaptiveThreshold& AdaptiveThreshold::operator=(const AdaptiveThreshold& other) {
  if (this != &other) state_ = other.started() ? std::make_unique<State>(*other.state_) : nullptr;
  return *this;
}

void AdaptiveThreshold::Start(uint64_t initial) {
  state_ = std::make_unique<State>();
  state_->in_force = std::clamp(initial, kMin, kMax);
}

std::optional<uint32_t> AdaptiveThreshold::ClassOf(uint64_t bytes) {
  const auto width = static_cast<uint32_t>(std::bit_width(bytes));
  if (width <= kClassMin || width > kClassMin + kClasses) return std::nullopt;
  return width - 1 - kClassMin;
}

uint64_t AdaptiveThreshold::Begin(OperationId operation, uint64_t bytes, Time now) {
  const std::optional<uint32_t> found = ClassOf(bytes);
  if (!found) return state_->in_force;
  state_->begun.PushBack({operation, now});
  if (++state_->classes[*found].operations % kProbeEvery != 0) return state_->in_force;
  return bytes >= state_->in_force ? bytes + 1 : bytes;
}

void AdaptiveThreshold::End(OperationId operation, uint64_t bytes, uint64_t bytes_zero_copy,
                            bool well, Time now) {
  if (!started()) return;
  for (size_t i = 0; i < state_->begun.size(); ++i) {
    if (state_->begun[i].operation != operation) continue;
    const Time begin = std::max(state_->begun[i].at, state_->last_end);
    state_->begun.EraseAt(i);
    state_->last_end = now;
    if (well) Learn(bytes, now - begin, 2 * bytes_zero_copy > bytes);
    return;
  }
}

void AdaptiveThreshold::Add(Cost& cost, int64_t ns) {
  cost.ns = cost.samples == 0 ? ns : cost.ns + (ns - cost.ns) / 4;
  if (cost.samples < kSamplesMin) ++cost.samples;
}

void AdaptiveThreshold::Learn(uint64_t bytes, Duration cost, bool zero_copy) {
  const std::optional<uint32_t> found = ClassOf(bytes);
  if (!found || !started()) return;
  Class& learned = state_->classes[*found];
  const uint64_t least = uint64_t{1} << (kClassMin + *found);
  const double share = static_cast<double>(least) / static_cast<double>(bytes);
  Add(zero_copy ? learned.zero_copy : learned.copied,
      static_cast<int64_t>(static_cast<double>(cost.count()) * share));
  if (std::min(learned.copied.samples, learned.zero_copy.samples) < kSamplesMin) return;
  // An eighth of difference, so that equal costs do not move it to and fro.
  const int64_t margin = learned.copied.ns / 8;
  if (learned.zero_copy.ns < learned.copied.ns - margin) {
    state_->in_force = std::clamp(std::min(state_->in_force, least), kMin, kMax);
  } else if (learned.zero_copy.ns > learned.copied.ns + margin) {
    state_->in_force = std::clamp(std::max(state_->in_force, 2 * least), kMin, kMax);
  }
}

void AdaptiveThreshold::AddTo(Digest& digest) const {
  digest.Add(in_force());
  if (!started()) return;
  digest.Add(state_->begun.size());
  for (const Class& learned : state_->classes) {
    digest.Add(learned.operations);
    digest.Add(static_cast<uint64_t>(learned.copied.ns)).Add(learned.copied.samples);
    digest.Add(static_cast<uint64_t>(learned.zero_copy.ns)).Add(learned.zero_copy.samples);
  }
  for (const Begun& begun : state_->begun) {
    digest.Add(static_cast<uint32_t>(begun.operation));
    digest.Add(static_cast<uint64_t>(begun.at.time_since_epoch().count()));
  }
  digest.Add(static_cast<uint64_t>(state_->last_end.time_since_epoch().count()));
}

}  // namespace esdp::sdp
