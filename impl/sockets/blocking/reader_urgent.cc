#include "impl/sockets/blocking/reader.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/stream/stream_state.h"

// The reader of a stream whose urgent bytes are not among the others. As of TCP there is one mark:
// the next urgent byte moves it on, and leaves the one before it among the others, or drops it where
// nothing was before that either.

namespace esdp::sockets {

size_t BlockingReader::KeepUrgent(std::span<const std::byte> came, Call& call) {
  if (came.empty()) return 0;
  if (const absl::Status open = OpenAhead(); !open.ok()) {
    call.ended = true;  // it is among the others
    return came.size();
  }
  memory_.front() = came.back();
  SetAhead(0, 1);
  SetMark(0);
  return came.size() - 1;
}

void BlockingReader::SetMark(size_t at) {
  if (IsAtMark() && apart_ && at > begin_) ++begin_;
  mark_ = at;
  urgent_.Meet(memory_[at]);
  SetAhead(begin_, end_);
}

void BlockingReader::PassMark(Call& call) {
  if (call.moved > 0 || call.args.until_mark) {
    call.ended = true;
    return;
  }
  mark_ = kNoMark;
  at_mark_.store(false, std::memory_order_relaxed);
  mark_ahead_.store(false, std::memory_order_relaxed);
  if (!apart_) urgent_.Forget();
  if (apart_) urgent_.Pass();
  SetAhead(begin_ + (apart_ ? 1 : 0), end_);
  call.dry = false;
}

// The connection shows what is announced until that is heard.
void BlockingReader::ForgetUrgent(const Call& call) {
  urgent_.Hear();
  if (call.moved > 0 && mark_ == kNoMark) urgent_.Forget();
}

void BlockingReader::LookForUrgent(const BlockingOptions& options) {
  if (options.urgent == UrgentBytes::kAmongOthers) return;
  urgent_.Hear();
  if (!urgent_.awaited() && !urgent_.any()) return;
  const Lane::Turn turn(lane_, absl::InfinitePast());
  if (!turn.status().ok()) return;  // who has it meets the byte
  apart_ = options.urgent == UrgentBytes::kApart;
  SetAhead(begin_, end_);
  const ReadArgs args = {.wait = false};
  Call call{args, options};
  while (urgent_.awaited() && !call.done()) {
    MakeRoomAhead();
    if (!memory_.empty() && end_ == memory_.size()) return;
    ReadAhead(call, 0);
    urgent_.Hear();
  }
}

absl::StatusOr<std::byte> BlockingReader::ReadUrgent(bool peek, const BlockingOptions& options) {
  if (options.urgent != UrgentBytes::kApart) {
    return MakeError(ErrorKind::kInvalidArgument, "urgent bytes are not kept apart");
  }
  LookForUrgent(options);
  return urgent_.Take(peek);
}

}  // namespace esdp::sockets
