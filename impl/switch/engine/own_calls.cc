#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>

#include "impl/switch/engine/host.h"

// The calls of the engine, and of the library that is linked into it, that make and close
// descriptors. They are found here instead of in libc, and by nobody else: what they make lies
// above the program's numbers, where no close of the program's reaches it. And those that use them,
// which go to libc past what is interposed.

namespace esdp::switching {
namespace {

// clang-format off
#define ESDP_REAL_CALLS(X)                                                                 \
  X(socket) X(socketpair) X(accept4) X(epoll_create1) X(eventfd) X(timerfd_create)         \
  X(memfd_create) X(pipe2) X(open) X(fcntl) X(ioctl) X(close) X(read) X(readv) X(recv)     \
  X(recvmsg) X(write) X(writev) X(send) X(sendmsg) X(shutdown) X(bind) X(connect)          \
  X(getsockname) X(getpeername) X(getsockopt) X(setsockopt) X(epoll_ctl) X(syscall)        \
  X(listen) X(poll) X(ppoll) X(epoll_wait)
// clang-format on

constinit struct {
#define ESDP_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT: a name has no parentheses
  ESDP_REAL_CALLS(ESDP_MEMBER)
#undef ESDP_MEMBER
} real;

// What `act` returns, which makes or closes a descriptor. No fork comes between that and what is
// told of it.
template <typename Act>
int Undivided(const Act& act) {
  struct Call {
    const Act& act;
    int result = -1;
  } call{act};
  host.undivided(
      [](void* what) {
        auto& self = *static_cast<Call*>(what);
        self.result = self.act();
      },
      &call);
  return call.result;
}

int DuplicateWithin(int fd, int from) {
  for (const bool afresh : {false, true}) {
    const int least = host.first_high(afresh);
    const int copy = real.fcntl(fd, F_DUPFD_CLOEXEC, from > least ? from : least);
    if (copy >= 0) host.own(copy, true);
    if (copy >= 0 || errno != EINVAL) return copy;
  }
  return -1;
}

int Duplicate(int fd, int from) {
  return Undivided([&] { return DuplicateWithin(fd, from); });
}

// To a high number, where one is free.
int Lift(int fd) {
  if (fd < 0) return fd;
  const int lifted = DuplicateWithin(fd, 0);
  if (lifted < 0) {
    host.own(fd, true);
    return fd;
  }
  real.close(fd);
  return lifted;
}

template <typename Make>
int Lifted(const Make& make) {
  return Undivided([&] { return Lift(make()); });
}

template <typename Make>
int LiftedPair(int pair[2], const Make& make) {
  return Undivided([&] {
    const int result = make();
    for (int i = 0; result == 0 && i < 2; ++i) pair[i] = Lift(pair[i]);
    return result;
  });
}

// What the other end has passed on.
void LiftPassedOn(msghdr& message) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int* const passed = reinterpret_cast<int*>(CMSG_DATA(each));
    for (size_t i = 0; i < count; ++i) passed[i] = Lift(passed[i]);
  }
}

constexpr int kPeerPidFd = 77;  // SO_PEERPIDFD, newer than the headers of some systems

}  // namespace

void FindRealCalls() {
#define ESDP_FIND(name) real.name = reinterpret_cast<decltype(real.name)>(host.real(#name));
  ESDP_REAL_CALLS(ESDP_FIND)
#undef ESDP_FIND
}

}  // namespace esdp::switching

// NOLINTBEGIN: the names are those of libc
#define ESDP_OWN(result, name, arguments) \
  extern "C" [[gnu::visibility("hidden")]] result name arguments

using esdp::switching::kPeerPidFd;
using esdp::switching::Lift;
using esdp::switching::Lifted;
using esdp::switching::LiftedPair;
using esdp::switching::LiftPassedOn;
using esdp::switching::real;
using esdp::switching::Undivided;

ESDP_OWN(int, socket, (int domain, int type, int protocol)) {
  return Lifted([&] { return real.socket(domain, type, protocol); });
}

ESDP_OWN(int, socketpair, (int domain, int type, int protocol, int pair[2])) {
  return LiftedPair(pair, [&] { return real.socketpair(domain, type, protocol, pair); });
}

ESDP_OWN(int, accept4, (int fd, sockaddr* address, socklen_t* len, int flags)) {
  return Lifted([&] { return real.accept4(fd, address, len, flags); });
}

ESDP_OWN(int, epoll_create1, (int flags)) {
  return Lifted([&] { return real.epoll_create1(flags); });
}

ESDP_OWN(int, eventfd, (unsigned value, int flags)) {
  return Lifted([&] { return real.eventfd(value, flags); });
}

ESDP_OWN(int, timerfd_create, (int clock, int flags)) {
  return Lifted([&] { return real.timerfd_create(clock, flags); });
}

ESDP_OWN(int, memfd_create, (const char* name, unsigned flags)) {
  return Lifted([&] { return real.memfd_create(name, flags); });
}

ESDP_OWN(int, pipe2, (int pair[2], int flags)) {
  return LiftedPair(pair, [&] { return real.pipe2(pair, flags); });
}

ESDP_OWN(int, open, (const char* path, int flags, ...)) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, unsigned);
  va_end(rest);
  return Lifted([&] { return real.open(path, flags, mode); });
}

ESDP_OWN(int, dup, (int fd)) { return esdp::switching::Duplicate(fd, 0); }

ESDP_OWN(int, fcntl, (int fd, int command, ...)) {
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    return esdp::switching::Duplicate(fd, static_cast<int>(argument));
  }
  return real.fcntl(fd, command, argument);
}

ESDP_OWN(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return real.ioctl(fd, request, argument);
}

ESDP_OWN(int, fcntl64, (int fd, int command, ...)) {
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  return fcntl(fd, command, argument);
}

ESDP_OWN(int, close, (int fd)) {
  return esdp::switching::Undivided([&] {
    esdp::switching::host.own(fd, false);
    return real.close(fd);
  });
}

// Most messages that could pass something on do not: those need no lock, which costs two system calls.
// A look without room for descriptors says of one that does that it is cut off.
ESDP_OWN(ssize_t, recvmsg, (int fd, msghdr* message, int flags)) {
  if (message->msg_controllen == 0) return real.recvmsg(fd, message, flags);
  msghdr look = *message;
  look.msg_controllen = 0;
  ssize_t received = real.recvmsg(fd, &look, flags | MSG_PEEK);
  if (received < 0) return received;
  if ((look.msg_flags & MSG_CTRUNC) == 0) {
    message->msg_controllen = 0;
    return real.recvmsg(fd, message, flags);
  }
  (void)Undivided([&] {
    received = real.recvmsg(fd, message, flags);
    if (received >= 0) LiftPassedOn(*message);
    return 0;
  });
  return received;
}

ESDP_OWN(int, getsockopt, (int fd, int level, int name, void* value, socklen_t* bytes)) {
  if (level != SOL_SOCKET || name != kPeerPidFd) {
    return real.getsockopt(fd, level, name, value, bytes);
  }
  return Undivided([&] {
    const int result = real.getsockopt(fd, level, name, value, bytes);
    if (result == 0) *static_cast<int*>(value) = Lift(*static_cast<int*>(value));
    return result;
  });
}

// As libc's own, it hands on what a call has at most, whatever the caller has given.
ESDP_OWN(long, syscall, (long number, ...)) {
  long arguments[6];
  va_list rest;
  va_start(rest, number);
  for (long& each : arguments) each = va_arg(rest, long);
  va_end(rest);
  const auto call = [&] {
    return real.syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                        arguments[4], arguments[5]);
  };
  if (number != SYS_pidfd_open) return call();
  return Lifted([&] { return static_cast<int>(call()); });
}

#define ESDP_PAST(result, name, arguments, ...) \
  ESDP_OWN(result, name, arguments) { return real.name(__VA_ARGS__); }

ESDP_PAST(ssize_t, read, (int fd, void* to, size_t bytes), fd, to, bytes)
ESDP_PAST(ssize_t, readv, (int fd, const iovec* to, int count), fd, to, count)
ESDP_PAST(ssize_t, recv, (int fd, void* to, size_t bytes, int flags), fd, to, bytes, flags)
ESDP_PAST(ssize_t, write, (int fd, const void* from, size_t bytes), fd, from, bytes)
ESDP_PAST(ssize_t, writev, (int fd, const iovec* from, int count), fd, from, count)
ESDP_PAST(ssize_t, send, (int fd, const void* from, size_t bytes, int flags), fd, from, bytes,
          flags)
ESDP_PAST(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), fd, message, flags)
ESDP_PAST(int, shutdown, (int fd, int how), fd, how)
ESDP_PAST(int, listen, (int fd, int backlog), fd, backlog)
ESDP_PAST(int, poll, (pollfd * waited, nfds_t count, int timeout), waited, count, timeout)
ESDP_PAST(int, ppoll,
          (pollfd * waited, nfds_t count, const timespec* timeout, const sigset_t* mask), waited,
          count, timeout, mask)
// As the compiler calls recv where it knows the room.
ESDP_OWN(ssize_t, __recv_chk, (int fd, void* to, size_t bytes, size_t room, int flags)) {
  return real.recv(fd, to, std::min(bytes, room), flags);
}
ESDP_PAST(int, bind, (int fd, const sockaddr* address, socklen_t len), fd, address, len)
ESDP_PAST(int, connect, (int fd, const sockaddr* address, socklen_t len), fd, address, len)
ESDP_PAST(int, getsockname, (int fd, sockaddr* address, socklen_t* len), fd, address, len)
ESDP_PAST(int, getpeername, (int fd, sockaddr* address, socklen_t* len), fd, address, len)
ESDP_PAST(int, setsockopt, (int fd, int level, int name, const void* value, socklen_t len), fd,
          level, name, value, len)
ESDP_PAST(int, epoll_ctl, (int set, int act, int fd, epoll_event* event), set, act, fd, event)
ESDP_PAST(int, epoll_wait, (int set, epoll_event* events, int most, int timeout), set, events, most,
          timeout)
// NOLINTEND
