#include <algorithm>
#include <span>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"

// The calls that wait for readiness. The system does: what is taken is only told that it is asked
// for. epoll_wait needs nothing of the kind, since every number of its set was added.

namespace esdp::libc {
namespace {

// Nothing, where it is not taken. `waits`: the thread does, by another call than epoll_wait.
void Prepare(int fd, bool waits) {
  (void)Route(
      fd,
      [&](Taker& who) {
        who.ShowReadiness(fd);
        if (waits) who.Waits();
        return Taker::Answer(0);
      },
      [] { return 0; });
}

void PrepareToWait(const pollfd* asked, nfds_t count) {
  if (!taken_numbers.any() || asked == nullptr) return;
  for (const pollfd& each : std::span(asked, count)) Prepare(each.fd, /*waits=*/true);
}

void PrepareToWait(int count, const fd_set* asked) {
  if (!taken_numbers.any() || asked == nullptr) return;
  for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
    if (taken_numbers.Has(fd) && FD_ISSET(fd, asked)) Prepare(fd, /*waits=*/true);
  }
}

}  // namespace

ESDP_SHORT_ENTRY(int, Poll, poll, (pollfd * asked, nfds_t count, int timeout),
                 (asked, count, timeout), !taken_numbers.any()) {
  PrepareToWait(asked, count);
  return real.poll.get()(asked, count, timeout);
}

ESDP_ENTRY(int, CheckedPoll, "__poll_chk",
           (pollfd * asked, nfds_t count, int timeout, size_t room)) {
  if (room / sizeof(*asked) >= count) PrepareToWait(asked, count);
  return real.poll_chk.get()(asked, count, timeout, room);
}

ESDP_SHORT_ENTRY(int, Ppoll, ppoll,
                 (pollfd * asked, nfds_t count, const timespec* timeout, const sigset_t* mask),
                 (asked, count, timeout, mask), !taken_numbers.any()) {
  PrepareToWait(asked, count);
  return real.ppoll.get()(asked, count, timeout, mask);
}

ESDP_ENTRY(int, CheckedPpoll, "__ppoll_chk",
           (pollfd * asked, nfds_t count, const timespec* timeout, const sigset_t* mask,
            size_t room)) {
  if (room / sizeof(*asked) >= count) PrepareToWait(asked, count);
  return real.ppoll_chk.get()(asked, count, timeout, mask, room);
}

ESDP_SHORT_ENTRY(int, Select, select,
                 (int count, fd_set* in, fd_set* out, fd_set* urgent, timeval* timeout),
                 (count, in, out, urgent, timeout), !taken_numbers.any()) {
  for (const fd_set* each : {in, out, urgent}) PrepareToWait(count, each);
  return real.select.get()(count, in, out, urgent, timeout);
}

ESDP_ENTRY(int, Pselect, "pselect",
           (int count, fd_set* in, fd_set* out, fd_set* urgent, const timespec* timeout,
            const sigset_t* mask)) {
  for (const fd_set* each : {in, out, urgent}) PrepareToWait(count, each);
  return real.pselect.get()(count, in, out, urgent, timeout, mask);
}

ESDP_ENTRY(int, EpollCtl, "epoll_ctl", (int set, int operation, int fd, epoll_event* event)) {
  if (operation != EPOLL_CTL_DEL) Prepare(fd, /*waits=*/false);
  return Route(
      fd, [&](Taker& who) { return who.EpollCtl(set, operation, fd, event); },
      [&] { return real.epoll_ctl.get()(set, operation, fd, event); });
}

}  // namespace esdp::libc
