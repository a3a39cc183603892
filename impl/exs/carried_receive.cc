#include "impl/exs/carried_receive.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "esdp/options.h"
#include "impl/exs/convert.h"

namespace esdp::exs {

int CarriedReceive::Begin() {
  std::erase_if(transfer_.parts, [](const Part& part) { return part.length == 0; });
  return ErrnoOf(PostNext());
}

void CarriedReceive::Stop(bool abort) {
  const CancelMode mode = abort ? CancelMode::kAbortConnection : CancelMode::kIfNotStarted;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (posted_ != OpId::kNone) (void)socket_.Cancel(posted_, mode);
}

// The piece of it that comes next.
absl::StatusOr<OpId> CarriedReceive::Post(Part& part, const OpArgs& args) {
  const RecvFlags flags = transfer_.wait_all ? RecvFlags::kWaitAll : RecvFlags::kNone;
  if (part.base == nullptr) {
    asked_ = part.length;
    return socket_.Recv(part.slice, flags, args);
  }
  const uint64_t length = std::min(part.length, kPinnedMax);
  Region region;
  if (length >= kDefaultThreshold && Register(part, length, &region)) {
    asked_ = registered_ = length;
    return socket_.Recv(region.slice(), flags, args);
  }
  asked_ = part.length;
  return socket_.RecvCopy(absl::MakeSpan(part.base + part.offset, part.length), flags, args);
}

absl::Status CarriedReceive::PostNext() {
  const std::lock_guard lock(mutex_);  // its end waits
  Part& part = transfer_.parts[next_];
  const absl::StatusOr<OpId> posted = library_.helper().Post(
      [&](const OpArgs& args) { return Post(part, args); },
      [self = shared_from_this()](const Event& event) { self->OnReceived(event); });
  if (!posted.ok()) {
    Unregister(std::exchange(registered_, 0));
    return posted.status();
  }
  posted_ = *posted;
  // Stop did not know this one if it came just before.
  if (stopped_) (void)socket_.Cancel(posted_);
  return absl::OkStatus();
}

void CarriedReceive::OnReceived(const Event& event) {
  uint64_t asked = 0;
  bool stopped = false;
  {
    const std::lock_guard lock(mutex_);
    posted_ = OpId::kNone;
    Unregister(std::exchange(registered_, 0));
    asked = asked_;
    stopped = stopped_;
  }
  Note(event);
  const bool whole = event.ok() && transfer_.wait_all && event.bytes == asked;
  const bool ends = (event.flags & (kEof | kUrgent)) != 0;
  if (!whole || ends) return Finish();
  Part& part = transfer_.parts[next_];
  part.offset += asked;
  part.length -= asked;
  if (part.length == 0) ++next_;
  if (next_ == transfer_.parts.size()) return Finish();
  if (stopped) {
    Fail(ECANCELED);
    return Finish();
  }
  const absl::Status posted = PostNext();
  if (posted.ok()) return;
  Fail(posted);
  Finish();
}

}  // namespace esdp::exs
