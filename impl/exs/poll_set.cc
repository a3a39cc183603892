#include "impl/exs/poll_set.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "impl/exs/convert.h"
#include "impl/exs/poll_own.h"

namespace esdp::exs {
namespace {

constexpr short kAskable = EXS_POLLIN | EXS_POLLPRI | EXS_POLLOUT | EXS_POLLRDHUP;

short PollOne(int fd, short events) {
  pollfd asked{fd, events, 0};
  return poll(&asked, 1, 0) > 0 ? asked.revents : short{0};
}

}  // namespace

int PollSet::Make(Library& library, std::shared_ptr<Queue> queue, const Operation& operation,
                  exs_pollfd_t* fds, int count) {
  if (const int error = library.helper().Start(); error != 0) return error;
  std::shared_ptr<PollSet> set(new PollSet(library, std::move(queue), operation, fds));
  set->entries_.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    if (const int error = set->Add(fds[i]); error != 0) return error;
  }
  library.polls().Add(set);
  library.helper().Run([set] { set->Start(); });
  return 0;
}

PollSet::~PollSet() {
  for (const Entry& entry : entries_) {
    if (entry.duplicate >= 0) close(entry.duplicate);
  }
}

// On the thread that posts: the numbers are the program's.
int PollSet::Add(const exs_pollfd_t& asked) {
  if ((asked.exs_pfd_events & ~kAskable & ~(EXS_POLLERR | EXS_POLLHUP | EXS_POLLNVAL)) != 0) {
    return EINVAL;
  }
  Entry& entry = entries_.emplace_back();
  entry.events = static_cast<short>(asked.exs_pfd_events & kAskable);
  entry.number = asked.exs_pfd_fd;
  if (entry.number < 0) return 0;
  if (library_.numbers().Find(entry.number, &entry.own) == 0) return 0;
  entry.listener = library_.listeners().Find(entry.number);
  entry.duplicate = fcntl(entry.number, F_DUPFD_CLOEXEC, 0);
  if (entry.duplicate < 0 && errno != EBADF) return errno;
  if (entry.duplicate < 0) entry.ready = EXS_POLLNVAL;
  return 0;
}

bool PollSet::Has(int fd) const {
  return std::ranges::any_of(entries_, [fd](const Entry& entry) { return entry.number == fd; });
}

void PollSet::Stop() {
  library_.helper().Run([self = shared_from_this()] { self->Finish(ECANCELED); });
}

// --- on the helper's thread ----------------------------------------------------------------------

void PollSet::Start() {
  if (concluded_) return;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].own != nullptr) AskOwn(i);
  }
  if (LookAtOthers()) return Finish(0);
  for (Entry& entry : entries_) {
    if (entry.duplicate >= 0 && !finishing_) WatchOther(entry);
  }
  MaybeConclude();
}

void PollSet::AskOwn(size_t place) {
  Entry& entry = entries_[place];
  if ((entry.events & EXS_POLLIN) != 0 && entry.own->bytes_ahead() > 0) {
    entry.ready = EXS_POLLIN;
    return Finish(0);
  }
  const absl::StatusOr<OpId> posted = library_.helper().Post(
      [&](const OpArgs& args) { return PollOwn(entry.own->socket(), entry.events, args); },
      [self = shared_from_this(), place](const Event& event) {
        Entry& ended = self->entries_[place];
        --self->outstanding_;
        ended.op = OpId::kNone;
        if (event.kind != ErrorKind::kCancelled) ended.ready = ReadyOf(event);
        if (ended.ready != 0) self->Finish(0);
        self->MaybeConclude();
      });
  if (posted.ok()) {
    ++outstanding_;
    entry.op = *posted;
  } else {
    entry.ready = RefusedOf(posted.status());
    Finish(0);
  }
}

void PollSet::WatchOther(Entry& entry) {
  entry.name = library_.helper().NewName();
  const auto events = static_cast<uint32_t>(entry.events);  // epoll has the values of poll
  const int error = library_.helper().Watch(entry.duplicate, events, entry.name,
                                            [self = shared_from_this()] { self->Finish(0); });
  if (error == 0) return;
  entry.name = 0;
  if (error != EPERM) return Finish(error);
  Finish(0);  // a file, which is always ready
}

bool PollSet::LookAtOthers() {
  bool any = false;
  for (Entry& entry : entries_) {
    if (entry.duplicate >= 0) entry.ready = PollOne(entry.duplicate, entry.events);
    if (entry.listener != nullptr && entry.listener->has_ready()) {
      entry.ready = static_cast<short>(entry.ready | (entry.events & EXS_POLLIN));
    }
    any |= entry.ready != 0;
  }
  return any;
}

void PollSet::LookAgain() {
  if (!finishing_ && LookAtOthers()) Finish(0);
}

// Asks back what is asked below; the event follows when that has ended.
void PollSet::Finish(int error) {
  if (std::exchange(finishing_, true)) return;
  error_ = error;
  for (Entry& entry : entries_) {
    if (entry.op != OpId::kNone) (void)entry.own->socket().Cancel(entry.op);
    if (entry.name != 0) library_.helper().Unwatch(entry.duplicate, entry.name);
    entry.name = 0;
  }
  MaybeConclude();
}

void PollSet::MaybeConclude() {
  if (!finishing_ || outstanding_ > 0 || std::exchange(concluded_, true)) return;
  exs_event_t event = EventOf(operation_);
  event.exs_evt_errno = error_;
  exs_evt_poll_t& told = event.exs_evt_union.exs_evt_poll;
  told.exs_evt_fds = fds_;
  if (error_ == 0) {
    (void)LookAtOthers();
    for (size_t i = 0; i < entries_.size(); ++i) {
      fds_[i].exs_pfd_revents = entries_[i].ready;
      if (entries_[i].ready != 0) ++told.exs_evt_ready;
    }
  }
  library_.polls().Remove(this);
  queue_->Deliver(event);
  queue_->Announce();
}

}  // namespace esdp::exs
