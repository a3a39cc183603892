#include "impl/switch/shim/made.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/awake.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/direct.h"
#include "impl/switch/shim/limits.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"

namespace esdp::switching {
namespace {

using libc::Fail;
using libc::taken_numbers;

// `to` is a copy of `from` now, whatever it was.
int Copied(int from, int to) {
  if (to < 0 || from == to || !(taken_numbers.Has(from) || taken_numbers.Has(to))) return to;
  const KeptErrno kept;
  const TableLock lock;
  if (!IsThisProcess()) {
    // A child that shares our memory, and is about to execute a program.
    if (Connection* const passed = table.Find(from); passed != nullptr) (void)RelayInstead(*passed);
    return to;
  }
  if (taken_numbers.Has(to)) Forget(to);
  if (Connection* const connection = table.Find(from); connection != nullptr) {
    table.AddNumber(to, *connection);
    // The engine's thread may have put something else under `from` since it was copied.
    if (IsSwitched(connection->state) && InodeOf(to) != connection->inode) {
      const int flags = made.fcntl.get()(to, F_GETFD);
      (void)made.dup3.get()(from, to, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
    }
  }
  return to;
}

// Bytes come, or go, by a call that names no buffer. 0, or -1 with errno.
int BeforeMove(int from, int to) {
  int error = 0;
  if (taken_numbers.Has(from)) {
    const Connection* const connection = table.Find(from);
    const State state = connection != nullptr ? connection->state.load() : State::kCandidate;
    if (state == State::kAccepted || state == State::kSpoke) error = DecideBeforeRead(from, false);
    if (state == State::kConnecting) error = DecideConnected(from);
  }
  if (error == 0 && taken_numbers.Has(to)) {
    const Connection* const connection = table.Find(to);
    const State state = connection != nullptr ? connection->state.load() : State::kCandidate;
    if (state == State::kAccepted) error = DecideBeforeWrite(to);
    if (state == State::kConnecting) error = DecideConnected(to);
  }
  for (const int number : {from, to}) {
    if (error != 0 || !taken_numbers.Has(number)) continue;
    const TableLock lock;
    Connection* const connection = table.Find(number);
    if (connection != nullptr) error = RelayInstead(*connection);
  }
  return error == 0 ? 0 : Fail(error);
}

int Closed(unsigned first, unsigned last, int flags) {
  if (!IsThisProcess()) return CloseRangeAround(first, last, flags);
  if ((flags & static_cast<int>(CLOSE_RANGE_CLOEXEC)) == 0) {
    const KeptErrno kept;
    const TableLock lock;
    for (unsigned number = first; number <= last; ++number) {
      if (static_cast<int>(number) > table.highest()) break;
      if (table.Find(static_cast<int>(number)) != nullptr) Forget(static_cast<int>(number));
    }
  }
  return CloseRangeAround(first, last, flags);
}

}  // namespace

constinit MadeCalls made;

int Fresh(int number) { return Copied(-1, WithinLimit(number)); }

void ResolveMade() {
  (void)made.socket.Resolve();
  (void)made.dup.Resolve();
  (void)made.dup2.Resolve();
  (void)made.dup3.Resolve();
  (void)made.fcntl.Resolve();
  (void)made.sendfile.Resolve();
  (void)made.splice.Resolve();
  (void)made.fdopen.Resolve();
  (void)made.exit_now.Resolve();
}

ESDP_ENTRY(int, Socket, "socket", (int domain, int type, int protocol)) {
  const int fd = WithinLimit(made.socket.get()(domain, type, protocol));
  if (fd < 0 || !MayConnectByRule()) {
    return Fresh(fd);
  }
  const bool stream = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;
  const bool internet = domain == AF_INET || domain == AF_INET6;
  if (stream && internet && (protocol == 0 || protocol == IPPROTO_TCP)) {
    MakeCandidate(fd);
  } else {
    (void)Fresh(fd);
  }
  return fd;
}

ESDP_ENTRY(int, Dup, "dup", (int fd)) {
  if (IsOwn(fd)) return Fail(EBADF);
  return Copied(fd, WithinLimit(made.dup.get()(fd)));
}

ESDP_ENTRY(int, Dup2, "dup2", (int from, int to)) {
  if (IsOwn(from) || IsOwn(to) || !IsWithinLimit(to)) return Fail(EBADF);
  return Copied(from, made.dup2.get()(from, to));
}

ESDP_ENTRY(int, Dup3, "dup3", (int from, int to, int flags)) {
  if (IsOwn(from) || IsOwn(to) || !IsWithinLimit(to)) return Fail(EBADF);
  return Copied(from, made.dup3.get()(from, to, flags));
}

namespace {

// While the engine's thread puts something else under the number its flags are not the program's. Under
// one that is not to be connected yet it puts nothing.
int FlagsOf(int fd, int command, void* argument) {
  if (StateOf(fd, State::kRelayed) == State::kCandidate) {
    return made.fcntl.get()(fd, command, argument);
  }
  const TableLock lock;
  return made.fcntl.get()(fd, command, argument);
}

int Control(int fd, int command, void* argument) {
  const bool of_flags = command == F_GETFL || command == F_SETFL;
  const int result = of_flags && taken_numbers.Has(fd) ? FlagsOf(fd, command, argument)
                                                       : made.fcntl.get()(fd, command, argument);
  if (command == F_SETFL && result == 0 && taken_numbers.Has(fd)) {
    Connection* const connection = table.Find(fd);
    const auto flags = reinterpret_cast<uintptr_t>(argument);
    if (connection != nullptr) connection->non_blocking = (flags & O_NONBLOCK) != 0;
    if (connection != nullptr && (flags & O_ASYNC) != 0) ShowEdgesOf(*connection);
  }
  if ((command == F_SETOWN || command == F_SETOWN_EX) && result == 0) RelayForSignals(fd);
  const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return copies ? Copied(fd, WithinLimit(result)) : result;
}

}  // namespace

// To read an argument that is not there is what libc does as well.
ESDP_ENTRY(int, Fcntl, "fcntl", (int fd, int command, ...)) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return Control(fd, command, argument);
}

ESDP_ENTRY(int, Fcntl64, "fcntl64", (int fd, int command, ...)) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return Control(fd, command, argument);
}

ESDP_ENTRY(ssize_t, SendFile, "sendfile", (int to, int from, off_t* offset, size_t bytes)) {
  if (BeforeMove(-1, to) != 0) return -1;
  return made.sendfile.get()(to, from, offset, bytes);
}

ESDP_ENTRY(ssize_t, SendFile64, "sendfile64", (int to, int from, off_t* offset, size_t bytes)) {
  if (BeforeMove(-1, to) != 0) return -1;
  return made.sendfile.get()(to, from, offset, bytes);
}

ESDP_ENTRY(ssize_t, Splice, "splice",
           (int from, off64_t* from_at, int to, off64_t* to_at, size_t bytes, unsigned flags)) {
  if (BeforeMove(from, to) != 0) return -1;
  return made.splice.get()(from, from_at, to, to_at, bytes, flags);
}

// What stdio does is seen by nobody.
ESDP_ENTRY(FILE*, FdOpen, "fdopen", (int fd, const char* mode)) {
  if (taken_numbers.Has(fd) && IsThisProcess()) (void)DecideUnseen(fd);
  return made.fdopen.get()(fd, mode);
}

ESDP_ENTRY(int, CloseRange, "close_range", (unsigned first, unsigned last, int flags)) {
  return Closed(first, last, flags);
}

ESDP_ENTRY(void, CloseFrom, "closefrom", (int first)) {
  (void)Closed(static_cast<unsigned>(first < 0 ? 0 : first), ~0u, 0);
}

ESDP_ENTRY(void, ExitNow, "_exit", (int code)) {
  FlushBeforeExit();
  made.exit_now.get()(code);
}

ESDP_ENTRY(void, ExitNowAsC, "_Exit", (int code)) {
  FlushBeforeExit();
  made.exit_now.get()(code);
}

}  // namespace esdp::switching
