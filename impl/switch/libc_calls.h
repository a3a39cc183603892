#ifndef ESDP_IMPL_SWITCH_LIBC_CALLS_H_
#define ESDP_IMPL_SWITCH_LIBC_CALLS_H_

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "impl/switch/real_call.h"

// What is interposed of libc. The names of the second list have no declaration of their own without
// _FORTIFY_SOURCE, for which they are.

// clang-format off
#define ESDP_LIBC_CALLS(X)                                                 \
  X(read) X(readv) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg)              \
  X(write) X(writev) X(send) X(sendto) X(sendmsg) X(sendmmsg)              \
  X(shutdown) X(close) X(bind) X(listen) X(connect) X(accept) X(accept4)   \
  X(getsockname) X(getpeername) X(getsockopt) X(setsockopt) X(ioctl)       \
  X(poll) X(ppoll) X(select) X(pselect) X(epoll_ctl) X(epoll_wait) X(epoll_pwait) X(pthread_cancel)
// clang-format on

#define ESDP_LIBC_CHECKED_CALLS(X) X(read_chk) X(recv_chk) X(recvfrom_chk) X(poll_chk) X(ppoll_chk)

namespace esdp::libc {

using ReadChk = ssize_t (*)(int, void*, size_t, size_t);
using RecvChk = ssize_t (*)(int, void*, size_t, size_t, int);
using RecvfromChk = ssize_t (*)(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
using PollChk = int (*)(pollfd*, nfds_t, int, size_t);
using PpollChk = int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);

// By deduction: the attributes of a declaration are none of its type.
template <typename R, typename... A>
RealCall<R (*)(A...)> CallOf(R (*)(A...));
template <typename R, typename... A>
RealCall<R (*)(A..., ...)> CallOf(R (*)(A..., ...));

struct RealCalls {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define ESDP_LIBC_MEMBER(name) decltype(CallOf(&::name)) name{#name};
  ESDP_LIBC_CALLS(ESDP_LIBC_MEMBER)
#undef ESDP_LIBC_MEMBER
  RealCall<ReadChk> read_chk{"__read_chk"};
  RealCall<RecvChk> recv_chk{"__recv_chk"};
  RealCall<RecvfromChk> recvfrom_chk{"__recvfrom_chk"};
  RealCall<PollChk> poll_chk{"__poll_chk"};
  RealCall<PpollChk> ppoll_chk{"__ppoll_chk"};
};

extern constinit RealCalls real;

// What a call answers that fails by this errno.
inline int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_LIBC_CALLS_H_
