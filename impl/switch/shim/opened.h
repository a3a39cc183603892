#ifndef ESDP_IMPL_SWITCH_SHIM_OPENED_H_
#define ESDP_IMPL_SWITCH_SHIM_OPENED_H_

#include <signal.h>
#include <sys/types.h>

#include "impl/switch/real_call.h"

// clang-format off
#define ESDP_OPENED_CALLS(X)                                                             \
  X(open) X(open64) X(openat) X(openat64) X(open_2) X(open64_2) X(openat_2) X(openat64_2) \
  X(creat) X(creat64) X(pipe) X(pipe2) X(socketpair) X(epoll_create) X(epoll_create1)    \
  X(eventfd) X(signalfd) X(timerfd_create) X(inotify_init) X(inotify_init1)              \
  X(memfd_create) X(pidfd_open) X(pidfd_getfd)
// clang-format on

namespace esdp::switching {

// The calls of libc that make a number of a file that is no connection.
struct OpenedCalls {
  using OpenCall = int (*)(const char*, int, ...);
  using OpenAtCall = int (*)(int, const char*, int, ...);
  using CreateCall = int (*)(const char*, mode_t);

  libc::RealCall<OpenCall> open{"open"}, open64{"open64"};
  libc::RealCall<OpenAtCall> openat{"openat"}, openat64{"openat64"};
  libc::RealCall<int (*)(const char*, int)> open_2{"__open_2"}, open64_2{"__open64_2"};
  libc::RealCall<int (*)(int, const char*, int)> openat_2{"__openat_2"}, openat64_2{"__openat64_2"};
  libc::RealCall<CreateCall> creat{"creat"}, creat64{"creat64"};
  libc::RealCall<int (*)(int*)> pipe{"pipe"};
  libc::RealCall<int (*)(int*, int)> pipe2{"pipe2"};
  libc::RealCall<int (*)(int, int, int, int*)> socketpair{"socketpair"};
  libc::RealCall<int (*)(int)> epoll_create{"epoll_create"}, epoll_create1{"epoll_create1"};
  libc::RealCall<int (*)(unsigned, int)> eventfd{"eventfd"};
  libc::RealCall<int (*)(int, const sigset_t*, int)> signalfd{"signalfd"};
  libc::RealCall<int (*)(int, int)> timerfd_create{"timerfd_create"};
  libc::RealCall<int (*)()> inotify_init{"inotify_init"};
  libc::RealCall<int (*)(int)> inotify_init1{"inotify_init1"};
  libc::RealCall<int (*)(const char*, unsigned)> memfd_create{"memfd_create"};
  libc::RealCall<int (*)(pid_t, unsigned)> pidfd_open{"pidfd_open"};
  libc::RealCall<int (*)(int, int, unsigned)> pidfd_getfd{"pidfd_getfd"};
};

void ResolveOpened();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_OPENED_H_
