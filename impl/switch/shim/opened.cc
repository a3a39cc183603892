#include "impl/switch/shim/opened.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "impl/switch/entry.h"
#include "impl/switch/shim/by_number.h"
#include "impl/switch/shim/limits.h"
#include "impl/switch/shim/made.h"

// The calls that make a number of another file. Where it was one of ours, it was closed by a call that
// nobody sees (of stdio, of io_uring, a bare system call), and is not any more.

namespace esdp::switching {
namespace {

constinit OpenedCalls opened;

// To read an argument that is not there is what libc does as well.
#define ESDP_MODE_BEHIND(last)            \
  va_list rest;                           \
  va_start(rest, last);                   \
  const auto mode = va_arg(rest, mode_t); \
  va_end(rest)

int Both(int result, const int* numbers) {
  if (result != 0) return result;
  if (!IsWithinLimit(numbers[0]) || !IsWithinLimit(numbers[1])) {
    (void)by_number.get()(SYS_close, numbers[0]);
    (void)by_number.get()(SYS_close, numbers[1]);
    errno = EMFILE;
    return -1;
  }
  (void)Fresh(numbers[0]);
  (void)Fresh(numbers[1]);
  return result;
}

}  // namespace

void ResolveOpened() {
#define ESDP_RESOLVE(name) (void)opened.name.Resolve();
  ESDP_OPENED_CALLS(ESDP_RESOLVE)
#undef ESDP_RESOLVE
}

ESDP_ENTRY(int, Open, "open", (const char* path, int flags, ...)) {
  ESDP_MODE_BEHIND(flags);
  return Fresh(opened.open.get()(path, flags, mode));
}

ESDP_ENTRY(int, Open64, "open64", (const char* path, int flags, ...)) {
  ESDP_MODE_BEHIND(flags);
  return Fresh(opened.open64.get()(path, flags, mode));
}

ESDP_ENTRY(int, OpenAt, "openat", (int folder, const char* path, int flags, ...)) {
  ESDP_MODE_BEHIND(flags);
  return Fresh(opened.openat.get()(folder, path, flags, mode));
}

ESDP_ENTRY(int, OpenAt64, "openat64", (int folder, const char* path, int flags, ...)) {
  ESDP_MODE_BEHIND(flags);
  return Fresh(opened.openat64.get()(folder, path, flags, mode));
}

ESDP_ENTRY(int, CheckedOpen, "__open_2", (const char* path, int flags)) {
  return Fresh(opened.open_2.get()(path, flags));
}

ESDP_ENTRY(int, CheckedOpen64, "__open64_2", (const char* path, int flags)) {
  return Fresh(opened.open64_2.get()(path, flags));
}

ESDP_ENTRY(int, CheckedOpenAt, "__openat_2", (int folder, const char* path, int flags)) {
  return Fresh(opened.openat_2.get()(folder, path, flags));
}

ESDP_ENTRY(int, CheckedOpenAt64, "__openat64_2", (int folder, const char* path, int flags)) {
  return Fresh(opened.openat64_2.get()(folder, path, flags));
}

ESDP_ENTRY(int, Create, "creat", (const char* path, unsigned mode)) {
  return Fresh(opened.creat.get()(path, mode));
}

ESDP_ENTRY(int, Create64, "creat64", (const char* path, unsigned mode)) {
  return Fresh(opened.creat64.get()(path, mode));
}

ESDP_ENTRY(int, Pipe, "pipe", (int* numbers)) { return Both(opened.pipe.get()(numbers), numbers); }

ESDP_ENTRY(int, Pipe2, "pipe2", (int* numbers, int flags)) {
  return Both(opened.pipe2.get()(numbers, flags), numbers);
}

ESDP_ENTRY(int, SocketPair, "socketpair", (int domain, int type, int protocol, int* numbers)) {
  return Both(opened.socketpair.get()(domain, type, protocol, numbers), numbers);
}

ESDP_ENTRY(int, EpollCreate, "epoll_create", (int size)) {
  return Fresh(opened.epoll_create.get()(size));
}

ESDP_ENTRY(int, EpollCreate1, "epoll_create1", (int flags)) {
  return Fresh(opened.epoll_create1.get()(flags));
}

ESDP_ENTRY(int, EventFd, "eventfd", (unsigned count, int flags)) {
  return Fresh(opened.eventfd.get()(count, flags));
}

ESDP_ENTRY(int, SignalFd, "signalfd", (int number, const sigset_t* signals, int flags)) {
  return number >= 0 ? opened.signalfd.get()(number, signals, flags)
                     : Fresh(opened.signalfd.get()(number, signals, flags));
}

ESDP_ENTRY(int, TimerFd, "timerfd_create", (int clock, int flags)) {
  return Fresh(opened.timerfd_create.get()(clock, flags));
}

ESDP_ENTRY(int, INotify, "inotify_init", ()) { return Fresh(opened.inotify_init.get()()); }

ESDP_ENTRY(int, INotify1, "inotify_init1", (int flags)) {
  return Fresh(opened.inotify_init1.get()(flags));
}

ESDP_ENTRY(int, MemFd, "memfd_create", (const char* name, unsigned flags)) {
  return Fresh(opened.memfd_create.get()(name, flags));
}

ESDP_ENTRY(int, PidFd, "pidfd_open", (pid_t process, unsigned flags)) {
  return Fresh(opened.pidfd_open.get()(process, flags));
}

ESDP_ENTRY(int, PidFdGet, "pidfd_getfd", (int process, int number, unsigned flags)) {
  return Fresh(opened.pidfd_getfd.get()(process, number, flags));
}

}  // namespace esdp::switching
