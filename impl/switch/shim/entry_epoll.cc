#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/waits.h"

// Waits with epoll, in which the engine's work is done.

namespace esdp::libc {

using switching::NoteCancellation;
using switching::WaitWithEpoll;

ESDP_SHORT_ENTRY(int, EpollWait, epoll_wait, (int set, epoll_event* events, int most, int timeout),
                 (set, events, most, timeout), !taken_numbers.any()) {
  return RouteTaken([&](Taker&) { return WaitWithEpoll(set, events, most, timeout); },
                    [&] { return real.epoll_wait.get()(set, events, most, timeout); });
}

// With a mask the system has to change that as it begins to wait.
ESDP_SHORT_ENTRY(int, EpollPwait, epoll_pwait,
                 (int set, epoll_event* events, int most, int timeout, const sigset_t* mask),
                 (set, events, most, timeout, mask), !taken_numbers.any() || mask != nullptr) {
  return RouteTaken([&](Taker&) { return WaitWithEpoll(set, events, most, timeout); },
                    [&] { return real.epoll_pwait.get()(set, events, most, timeout, mask); });
}

ESDP_ENTRY(int, PthreadCancel, "pthread_cancel", (pthread_t thread)) {
  const int error = real.pthread_cancel.get()(thread);
  if (taken_numbers.any()) NoteCancellation();
  return error;
}

}  // namespace esdp::libc
