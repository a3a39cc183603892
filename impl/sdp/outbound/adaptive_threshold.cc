#include "impl/sdp/outbound/adaptive_threshold.h"

#include <algorithm>

namespace esdp::sdp {

AdaptiveThreshold& AdaptiveThreshold::operator=(const AdaptiveThreshold& other) {
  if (this != &other) state_ = other.started() ? std::make_unique<State>(*other.state_) : nullptr;
  return *this;
}

void AdaptiveThreshold::Start(uint64_t initial) { state_ = std::make_unique<State>(initial); }

uint64_t AdaptiveThreshold::Begin(OperationId operation, uint64_t bytes, Time now) {
  if (LearnedThreshold::Covers(bytes)) state_->begun.PushBack({operation, now});
  return state_->learned.Begin(bytes);
}

void AdaptiveThreshold::End(OperationId operation, uint64_t bytes, uint64_t bytes_zero_copy,
                            bool well, Time now) {
  if (!started()) return;
  for (size_t i = 0; i < state_->begun.size(); ++i) {
    if (state_->begun[i].operation != operation) continue;
    const Time begin = std::max(state_->begun[i].at, state_->last_end);
    state_->begun.EraseAt(i);
    state_->last_end = now;
    if (well) state_->learned.Learn(bytes, now - begin, 2 * bytes_zero_copy > bytes);
    return;
  }
}

void AdaptiveThreshold::AddTo(Digest& digest) const {
  if (!started()) {
    digest.Add(0);
    return;
  }
  state_->learned.AddTo(digest);
  digest.Add(state_->begun.size());
  for (const Begun& begun : state_->begun) {
    digest.Add(static_cast<uint32_t>(begun.operation));
    digest.Add(static_cast<uint64_t>(begun.at.time_since_epoch().count()));
  }
  digest.Add(static_cast<uint64_t>(state_->last_end.time_since_epoch().count()));
}

}  // namespace esdp::sdp
