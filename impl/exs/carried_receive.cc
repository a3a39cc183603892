#include "impl/exs/carried_receive.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "esdp/options.h"
#include "impl/exs/convert.h"

namespace esdp::exs {

int CarriedReceive::Begin() {
  std::erase_if(transfer_.parts, [](const Part& part) { return part.length == 0; });
  if (transfer_.peeks) {
    for (const Part& part : transfer_.parts) wanted_ += part.length;
    wanted_ = std::min<uint64_t>(wanted_, Ahead::kBytes);
  } else {
    TakeAhead();
  }
  if (Satisfied()) {
    FinishLater();
    return 0;
  }
  const absl::Status posted = PostNext();
  if (posted.ok() || (end_.bytes == 0 && !(transfer_.peeks && ahead_.size() > 0))) {
    return ErrnoOf(posted);
  }
  if (!transfer_.peeks) Fail(posted);
  FinishLater();
  return 0;
}

// Whether nothing has to be received for it any more.
bool CarriedReceive::Satisfied() const {
  if (transfer_.parts.empty()) return true;
  if (transfer_.peeks) return ahead_.size() >= wanted_ || (ahead_.size() > 0 && ahead_.urgent());
  if (end_.bytes == 0) return false;
  const bool urgent = (end_.flags & EXSX_EVF_URGENT) != 0;
  return !transfer_.wait_all || urgent || next_ == transfer_.parts.size();
}

// Not before the post has returned.
void CarriedReceive::FinishLater() {
  library_.helper().Run([self = shared_from_this()] {
    if (self->transfer_.peeks) self->ShowAhead();
    self->Finish();
  });
}

// --- read ahead ----------------------------------------------------------------------------------

void CarriedReceive::TakeAhead() {
  while (ahead_.size() > 0 && next_ < transfer_.parts.size()) {
    Part& part = transfer_.parts[next_];
    const bool urgent = ahead_.urgent();
    const size_t taken = ahead_.Copy(MemoryOf(part), 0);
    ahead_.Drop(taken);
    part.offset += taken;
    part.length -= taken;
    if (part.length == 0) ++next_;
    end_.bytes += taken;
    end_.flags |= EXSX_EVF_COPIED;
    if (urgent && ahead_.size() == 0) end_.flags |= EXSX_EVF_URGENT;
  }
}

absl::StatusOr<OpId> CarriedReceive::PostPeek(const OpArgs& args) {
  const absl::Span<std::byte> room = ahead_.Room();
  if (!transfer_.wait_all) return socket_.RecvCopy(room, RecvFlags::kNone, args);
  return socket_.RecvCopy(room.first(wanted_ - ahead_.size()), RecvFlags::kWaitAll, args);
}

// What has come stays, whatever has ended it; an end of the connection is told again.
void CarriedReceive::OnPeeked(const Event& event, bool stopped) {
  ahead_.Add(event.bytes, (event.flags & kUrgent) != 0);
  if (ahead_.size() == 0 || event.eof()) {
    Note(event);
  } else if (stopped && !Satisfied()) {
    Fail(ECANCELED);
  }
  ShowAhead();
  Finish();
}

void CarriedReceive::ShowAhead() {
  end_.bytes = 0;
  if (end_.error != 0) return;
  for (const Part& part : transfer_.parts) end_.bytes += ahead_.Copy(MemoryOf(part), end_.bytes);
  if (end_.bytes == 0) return;
  end_.flags |= EXSX_EVF_COPIED;
  if (end_.bytes == ahead_.size() && ahead_.urgent()) end_.flags |= EXSX_EVF_URGENT;
}

// --- pieces --------------------------------------------------------------------------------------

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
    const auto rest = part.region.slice(part.slice.offset() + part.offset, part.length);
    return rest.ok() ? socket_.Recv(*rest, flags, args) : rest.status();
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
  const absl::StatusOr<OpId> posted = library_.helper().Post(
      [&](const OpArgs& args) {
        return transfer_.peeks ? PostPeek(args) : Post(transfer_.parts[next_], args);
      },
      [self = shared_from_this()](const Event& event) { self->OnReceived(event); });
  if (!posted.ok()) {
    Unregister(std::exchange(registered_, 0));
    return posted.status();
  }
  posted_ = *posted;
  // Stop did not know this one if it came just before. And who looks does not wait for more than
  // there is, unless all are to be there.
  const bool only_now = transfer_.peeks && !transfer_.wait_all && ahead_.size() > 0;
  if (stopped_ || only_now) (void)socket_.Cancel(posted_);
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
  if (transfer_.peeks) return OnPeeked(event, stopped);
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
