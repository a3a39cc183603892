#include "tests/sdp/mode_watch.h"

#include <algorithm>
#include <variant>

namespace esdp::sdp::testing {

using wire::Mode;

const char* ModeWatch::OnImmediateSent(const wire::Message& message, uint32_t payload) {
  const wire::Body& body = message.body;
  if (const auto* advert = std::get_if<wire::SrcAvail>(&body)) {
    return CheckSrcAvail(*advert, message.base.sequence, payload);
  }
  if (const auto* change = std::get_if<wire::ModeChange>(&body)) return CheckModeChange(*change);
  if (std::holds_alternative<wire::SinkAvail>(body) && receive_ != Mode::kPipelined) {
    return "SinkAvail: the half is not Pipelined";
  }
  if (std::holds_alternative<wire::SrcAvailCancel>(body)) {
    if (!overridden_ && (shown_.empty() || cancel_)) return "SrcAvailCancel: of nothing, or twice";
    cancel_ = message.base.sequence;
  }
  return payload > 0 ? CheckData(payload) : nullptr;
}

const char* ModeWatch::CheckSrcAvail(const wire::SrcAvail& advert, uint32_t sequence,
                                     uint32_t payload) {
  if (send_ == Mode::kBuffered) return "SrcAvail: in Buffered";
  if (send_ == Mode::kCombined && payload == 0) return "SrcAvail: without user bytes in Combined";
  if (send_ == Mode::kPipelined && payload > 0) return "SrcAvail: with user bytes in Pipelined";
  if (payload >= advert.length) return "SrcAvail: nothing left to read";
  if (overridden_) return nullptr;
  if (cancel_) return "SrcAvail: the cancel is not Processed";
  if (send_ == Mode::kCombined && !shown_.empty()) return "SrcAvail: a second one in Combined";
  if (payload > 0 && owed_ > 0) return "SrcAvail: a remainder is owed";
  shown_.push_back({advert.length - payload, sequence});
  return nullptr;
}

const char* ModeWatch::CheckData(uint32_t payload) {
  if (overridden_) return nullptr;
  if (!shown_.empty() && payload > owed_) return "Data: a SrcAvail is outstanding";
  owed_ -= std::min<uint64_t>(owed_, payload);
  return nullptr;
}

const char* ModeWatch::CheckModeChange(const wire::ModeChange& change) {
  if (change.changes_send_half) {
    const bool legal = receive_ == Mode::kBuffered && change.mode == Mode::kCombined;
    receive_ = change.mode;
    return legal ? nullptr : "ModeChange: of the peer's half, but not from Buffered to Combined";
  }
  const bool legal = (send_ == Mode::kCombined && change.mode != Mode::kCombined) ||
                     (send_ == Mode::kPipelined && change.mode == Mode::kCombined);
  send_ = change.mode;
  if (!legal) return "ModeChange: not a step that the source may order";
  if (overridden_) return nullptr;
  if (send_ == Mode::kBuffered && !shown_.empty()) return "ModeChange: to Buffered with a SrcAvail";
  return nullptr;
}

void ModeWatch::OnArrived(const wire::Message& message) {
  if (const auto* change = std::get_if<wire::ModeChange>(&message.body)) {
    (change->changes_send_half ? send_ : receive_) = change->mode;
  } else if (const auto* completion = std::get_if<wire::RdmaRdCompl>(&message.body)) {
    if (shown_.empty()) return;
    shown_.front().left -= std::min<uint64_t>(shown_.front().left, completion->length);
    if (shown_.front().left == 0) shown_.pop_front();
  } else if (std::holds_alternative<wire::SendSm>(message.body)) {
    OnSendSm(message.base.acknowledged);
  } else if (std::holds_alternative<wire::SinkAvail>(message.body)) {
    overridden_ = overridden_ || !shown_.empty();  // [8.2, 8.3]
  }
  if (shown_.empty()) cancel_.reset();
}

void ModeWatch::OnSendSm(uint32_t acknowledged) {
  if (shown_.empty() || static_cast<int32_t>(acknowledged - shown_.front().sequence) < 0) return;
  if (cancel_ && static_cast<int32_t>(acknowledged - *cancel_) >= 0) {
    shown_.clear();
    return;
  }
  owed_ += shown_.front().left;
  shown_.pop_front();
}

}  // namespace esdp::sdp::testing
