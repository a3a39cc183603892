#include "impl/sdp/flow/resize.h"

#include <algorithm>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

// --- the peer's buffers ---

void ResizeRequest::Start(uint32_t size, uint32_t wish, bool by_need) {
  const uint64_t sent = sent_;
  *this = ResizeRequest{};  // of another queue pair nothing else is left
  sent_ = sent;
  size_ = size;
  by_need_ = by_need;
  wish_ = wish == size || (by_need && wish < size) ? 0 : wish;
  if (wish_ == 0) return;
  due_at_ = uint64_t{by_need ? kResizeByNeedAfterBuffers : kResizeAfterBuffers} * size;
}

wire::ChRcvBuf ResizeRequest::Take(uint32_t sequence) {
  before_ = size_;
  asked_ = wish_;
  rises_at_ = sequence;
  outstanding_ = true;
  due_at_ = kNever;
  size_ = std::min(size_, asked_);  // [R11.2]
  return {asked_};
}

const char* ResizeRequest::OnAck(uint32_t actual_size, const wire::BaseHeader& header) {
  if (!outstanding_) return nullptr;  // [R11.11]
  if (actual_size < std::min(before_, asked_) - std::min(before_, kResizeSlack)) {
    return "ChRcvBufAck.ActSz: below both the size in force and the size asked for";
  }
  if (asked_ < before_ && actual_size > before_) {
    return "ChRcvBufAck.ActSz: above the size in force, and a smaller one was asked for";
  }
  outstanding_ = false;
  wish_ = 0;  // [R11.7] granted, in part or not at all: never again
  if (asked_ < before_) {
    size_ = std::max(size_, actual_size);
    return nullptr;
  }
  // [R11.4] A deployed peer's number leaves the header out.
  if (actual_size <= before_ + kResizeSlack) return nullptr;
  rises_to_ = std::min(actual_size, asked_);
  rises_at_ = header.acknowledged + header.buffers;
  return nullptr;
}

void ResizeRequest::OnDisregarded() {
  outstanding_ = false;
  due_at_ = 0;
  size_ = before_;
}

// [R11.5]
bool ResizeRequest::Rises(uint32_t last_sent) {
  if (rises_to_ == 0 || !AtOrAfter(last_sent, rises_at_)) return false;
  size_ = rises_to_;
  rises_to_ = 0;
  return true;
}

void ResizeRequest::AddTo(Digest& digest) const {
  digest.Add(size_).Add(wish_).Add(before_).Add(asked_).Add(outstanding_).Add(rises_to_);
  digest.Add(rises_at_).Add(wish_ != 0 ? sent_ : 0);
}

// --- our own ---

void ResizeAnswer::Start(uint32_t size, uint32_t size_max) {
  size_ = told_ = size;
  size_max_ = size_max;
}

ResizeAnswer::Next ResizeAnswer::OnChRcvBuf(uint32_t desired_size) {
  if (pending()) return Next::kViolation;  // [R11.1]
  wanted_ = std::min(desired_size, std::max(size_, size_max_));
  if (wanted_ > size_) {
    state_ = State::kPreparing;
    return Next::kPrepare;
  }
  // [R11.3] A decrease needs no memory and may be answered at once; never below what was asked for.
  if (size_max_ > 0) size_ = wanted_;
  state_ = State::kDue;
  return Next::kAnswer;
}

void ResizeAnswer::OnPrepared(bool done, uint16_t posted) {
  if (done) {
    size_ = wanted_;
    old_posted_ = posted;
  }
  state_ = done && old_posted_ > 0 ? State::kReplacing : State::kDue;
}

wire::ChRcvBufAck ResizeAnswer::Take() {
  state_ = State::kIdle;
  told_ = size_;
  return {size_};
}

void ResizeAnswer::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(state_)).Add(size_).Add(told_).Add(size_max_).Add(wanted_);
  digest.Add(old_posted_);
}

}  // namespace esdp::sdp
