#include <utility>

#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// SO_ASYNC_SEND_TIMEOUT and SO_ASYNC_RECV_TIMEOUT: what has been outstanding for too long is told,
// and goes on.

namespace esdp::exs {

// Null for an operation that moves no bytes, or is none of the application's.
ExsSocket::Notice* ExsSocket::NoticeOf(const Operation& operation) {
  if (operation.inner) return nullptr;
  switch (operation.type) {
    case EXS_EVT_SEND:
    case EXS_EVT_SENDMSG:
    case EXS_EVT_SENDFILE:
      return &notices_[static_cast<size_t>(Way::kSending)];
    case EXS_EVT_RECV:
    case EXS_EVT_RECVMSG:
      return &notices_[static_cast<size_t>(Way::kReceiving)];
    default:
      return nullptr;
  }
}

NoticeOption ExsSocket::GetNotice(Way way) const {
  const std::lock_guard lock(mutex_);
  return notices_[static_cast<size_t>(way)].option;
}

void ExsSocket::SetNotice(Way way, const NoticeOption& option) {
  const std::lock_guard lock(mutex_);
  Notice& notice = notices_[static_cast<size_t>(way)];
  notice.option = option;
  notice.spent = false;
  notice.last_progress = Library::Current()->context().Now();
  if (notice.outstanding > 0) Schedule(notice);
}

// With the lock. One timer runs for each direction at most.
void ExsSocket::Schedule(Notice& notice) {
  if (notice.option.period == absl::ZeroDuration() || notice.scheduled) return;
  notice.scheduled = true;
  const Way way = &notice == notices_.data() ? Way::kSending : Way::kReceiving;
  Library::Current()->helper().RunAt(notice.last_progress + notice.option.period,
                                     [self = weak_from_this(), way] {
                                       if (const auto socket = self.lock(); socket != nullptr) {
                                         socket->CheckNotice(way);
                                       }
                                     });
}

// With the lock.
const Operation* ExsSocket::Oldest(const Notice& notice) {
  const Operation* oldest = nullptr;
  for (const Operation* each = operations_; each != nullptr; each = each->next) {
    if (NoticeOf(*each) == &notice) oldest = each;
  }
  return oldest;
}

// On the helper's thread.
void ExsSocket::CheckNotice(Way way) {
  Notice& notice = notices_[static_cast<size_t>(way)];
  std::shared_ptr<Queue> queue;
  {
    const std::lock_guard lock(mutex_);
    notice.scheduled = false;
    const Operation* oldest = Oldest(notice);
    if (oldest == nullptr) return;  // the next post begins anew
    queue = oldest->queue->shared_from_this();
  }
  queue->Look();  // what has ended, and nobody has come for, is not late
  std::shared_ptr<Queue> told;
  {
    const std::lock_guard lock(mutex_);
    if (TellNotice(way, notice, &told)) Schedule(notice);
  }
  if (told != nullptr) told->Announce();
}

// With the lock; whether the timer runs on.
bool ExsSocket::TellNotice(Way way, Notice& notice, std::shared_ptr<Queue>* told) {
  const Operation* oldest = Oldest(notice);
  const absl::Duration period = notice.option.period;
  if (oldest == nullptr || notice.spent || period == absl::ZeroDuration()) return false;
  const absl::Time now = Library::Current()->context().Now();
  if (now < notice.last_progress + period) return true;
  notice.last_progress = now;
  // Where there is no slot this notice is one with the next.
  if (!oldest->queue->Reserve(1)) return true;
  exs_event_t event = EventOf(*oldest);
  event.exs_evt_type = way == Way::kSending ? EXS_EVT_SENDTIMEOUT : EXS_EVT_RECVTIMEOUT;
  oldest->queue->Deliver(event);
  *told = oldest->queue->shared_from_this();
  notice.spent = notice.option.once;
  return !notice.spent;
}

}  // namespace esdp::exs
