#include "impl/sdp/outbound/adaptive_threshold.h"

#include <algorithm>
#include <utility>

namespace esdp::sdp {
namespace {

constexpr uint32_t kDepthMax = 64;  // more on their way overlap no further
// Operations end in bunches, and what a few of them have cost hangs on where among these they begin.
constexpr uint32_t kCountedMin = 16;

uint32_t Counted(uint32_t depth) { return depth == 1 ? 1 : std::max(depth, kCountedMin); }

}  // namespace

AdaptiveThreshold& AdaptiveThreshold::operator=(const AdaptiveThreshold& other) {
  if (this != &other) state_ = other.started() ? std::make_unique<State>(*other.state_) : nullptr;
  return *this;
}

void AdaptiveThreshold::Start(uint64_t initial, const PeerBuffers& peer) {
  state_ = std::make_unique<State>(initial, peer);
}

uint32_t AdaptiveThreshold::State::Settling(uint64_t bytes, bool zero_copy) const {
  const uint32_t deep = std::max(depth, depth_before);
  if (zero_copy) return deep;
  const uint64_t each = (bytes + peer.bytes - 1) / peer.bytes;
  return deep + static_cast<uint32_t>(peer.count / each);
}

LearnedThreshold::Rows AdaptiveThreshold::State::RowsOf(uint64_t bytes) const {
  const uint32_t deep = std::max(depth, depth_before);
  return {.copied = Settling(bytes, false) + Counted(deep),
          .zero_copy = Settling(bytes, true) + Counted(deep)};
}

uint64_t AdaptiveThreshold::Begin(OperationId operation, uint64_t bytes, Time now) {
  if (!LearnedThreshold::Covers(bytes)) return in_force();
  state_->begun.PushBack({operation, now});
  state_->depth = std::clamp(static_cast<uint32_t>(state_->begun.size()), state_->depth, kDepthMax);
  return state_->learned.Begin(bytes, state_->RowsOf(bytes));
}

void AdaptiveThreshold::State::Count(uint64_t bytes, Duration cost) {
  if (row.counted > 0 && !LearnedThreshold::AreAlike(bytes, row.bytes / row.counted)) {
    row = {.zero_copy = row.zero_copy, .ended = row.ended};
  }
  row.bytes += bytes;
  row.cost += cost;
  if (++row.counted < Counted(std::max(depth, depth_before))) return;
  learned.Learn(row.bytes / row.counted, row.cost / row.counted, row.zero_copy);
  row = {.zero_copy = row.zero_copy, .ended = row.ended};
  depth_before = std::exchange(depth, 1);
}

void AdaptiveThreshold::End(OperationId operation, uint64_t bytes, uint64_t bytes_zero_copy,
                            bool well, Time now) {
  if (!started()) return;
  State& state = *state_;
  for (size_t i = 0; i < state.begun.size(); ++i) {
    if (state.begun[i].operation != operation) continue;
    const Time begin = std::max(state.begun[i].at, state.last_end);
    state.begun.EraseAt(i);
    state.last_end = now;
    const bool zero_copy = 2 * bytes_zero_copy > bytes;
    if (!well || zero_copy != state.row.zero_copy) state.row = {.zero_copy = zero_copy};
    if (!well) return;
    if (state.row.ended++ >= state.Settling(bytes, zero_copy)) state.Count(bytes, now - begin);
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
  const Row& row = state_->row;
  digest.Add(row.zero_copy).Add(row.ended).Add(row.counted).Add(row.bytes);
  digest.Add(static_cast<uint64_t>(row.cost.count()));
  digest.Add(state_->peer.count)
      .Add(state_->peer.bytes)
      .Add(state_->depth)
      .Add(state_->depth_before);
}

}  // namespace esdp::sdp
