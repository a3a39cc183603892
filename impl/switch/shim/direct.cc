#include "impl/switch/shim/direct.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/waits.h"

namespace esdp::switching {
namespace {

using libc::real;

ssize_t Answered(const Moved& moved) {
  if (moved.bytes < 0) errno = moved.error;
  return moved.bytes;
}

bool IsUrgentInLine(int fd) {
  int on = 0;
  socklen_t bytes = sizeof(on);
  return real.getsockopt.get()(fd, SOL_SOCKET, SO_OOBINLINE, &on, &bytes) == 0 && on != 0;
}

int64_t TimeOf(int fd, int name) {
  timeval time = {};
  socklen_t bytes = sizeof(time);
  if (real.getsockopt.get()(fd, SOL_SOCKET, name, &time, &bytes) != 0) return 0;
  return (int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000;
}

// Until there is something to read in the pair, which says that it is set up, or has failed. What is
// there stays. 1: look again; else the answer of the call.
ssize_t WaitForSetUp(int fd, int flags) {
  ShowReadinessOf(fd);
  char byte = 0;
  return real.recv.get()(fd, &byte, 1, MSG_PEEK | (flags & MSG_DONTWAIT));
}

// What is left of a message behind `done` bytes.
class Rest {
 public:
  Rest(const msghdr& message, size_t done) : message_(message) {
    size_t count = 0;
    for (const iovec& piece : std::span(message.msg_iov, message.msg_iovlen)) {
      const size_t before = std::min(done, piece.iov_len);
      done -= before;
      if (piece.iov_len > before) {
        pieces_[count++] = {static_cast<char*>(piece.iov_base) + before, piece.iov_len - before};
      }
    }
    message_.msg_iov = pieces_.data();
    message_.msg_iovlen = count;
    message_.msg_name = nullptr;
    message_.msg_namelen = 0;
  }
  const msghdr& message() const { return message_; }
  bool empty() const { return message_.msg_iovlen == 0; }

 private:
  std::array<iovec, kMostPieces> pieces_;
  msghdr message_;
};

bool MayWait(const Connection& connection, int flags) {
  return !connection.non_blocking && (flags & MSG_DONTWAIT) == 0;
}

// Into the pair, from where it goes on once the connection is set up. Nothing: it is, or is relayed.
libc::Taker::Count SendEarly(Connection& connection, int fd, const msghdr& message, int flags) {
  const TableLock lock;
  if (connection.state != State::kSettingUp) return std::nullopt;
  return real.sendmsg.get()(fd, &message, (flags | MSG_DONTWAIT) & ~MSG_FASTOPEN);
}

// False: the time is over.
bool WaitForRoom(int fd) {
  ShowReadinessOf(fd);
  const int64_t time = TimeOf(fd, SO_SNDTIMEO) / 1'000'000;
  pollfd one = {.fd = fd, .events = POLLOUT, .revents = 0};
  const int ready = real.poll.get()(&one, 1, time > 0 ? static_cast<int>(time) : -1);
  if (ready == 0) errno = EAGAIN;
  return ready > 0;
}

libc::Taker::Count SendOnce(Connection& connection, int fd, const msghdr& message, int flags) {
  if (connection.state == State::kSettingUp) {
    if (const auto sent = SendEarly(connection, fd, message, flags)) return sent;
  }
  if (connection.state != State::kDirect) return std::nullopt;
  const Moved moved = engine.send(connection.relay, message, flags, !connection.non_blocking);
  if (moved.error == Moved::kNotDirect) return std::nullopt;
  return Answered(moved);
}

// All of it, or as much as goes without a wait where there is to be none.
ssize_t SendInSetUp(Connection& connection, int fd, const msghdr& message, int flags) {
  const int before = errno;
  size_t done = 0;
  for (;;) {
    const Rest rest(message, done);
    if (rest.empty() && done > 0) break;
    libc::Taker::Count sent = SendOnce(connection, fd, rest.message(), flags);
    if (!sent.has_value()) sent = real.sendmsg.get()(fd, &rest.message(), flags & ~MSG_FASTOPEN);
    const bool full = *sent < 0 && errno == EAGAIN && connection.state == State::kSettingUp;
    const bool waits = MayWait(connection, flags);
    if (*sent > 0) done += static_cast<size_t>(*sent);
    if (*sent == 0) break;
    if (full && waits && WaitForRoom(fd)) continue;
    if (*sent < 0 && done == 0) return -1;
    if (*sent < 0 || !waits) break;
  }
  errno = before;
  return static_cast<ssize_t>(done);
}

}  // namespace

libc::Taker::Count ReceiveDirect(int fd, msghdr& message, int flags) {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr || (flags & MSG_ERRQUEUE) != 0) return std::nullopt;
  if (MayWait(*connection, flags)) NoteWait(WaitsIn::kEngine);
  while (connection->state == State::kSettingUp) {
    if ((flags & MSG_OOB) != 0) {
      errno = EINVAL;
      return -1;
    }
    const ssize_t waited = WaitForSetUp(fd, flags);
    if (waited <= 0 && connection->state == State::kSettingUp) return waited;
  }
  if (connection->state != State::kDirect) return std::nullopt;
  const Moved moved = engine.receive(connection->relay, message, flags, !connection->non_blocking);
  if (moved.error == Moved::kNotDirect) return std::nullopt;
  return Answered(moved);
}

libc::Taker::Count SendDirect(int fd, const msghdr& message, int flags) {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr || connection->state == State::kRelayed) return std::nullopt;
  if (MayWait(*connection, flags)) NoteWait(WaitsIn::kEngine);
  if (message.msg_iovlen > kMostPieces || message.msg_controllen != 0) return std::nullopt;
  if (connection->state == State::kDirect) return SendOnce(*connection, fd, message, flags);
  if ((flags & MSG_OOB) != 0) engine.expect_urgent();
  return SendInSetUp(*connection, fd, message, flags);
}

// While it is set up the pair has it, and is relayed.
libc::Taker::Answer ShutDirect(int fd, int how) {
  const int before = errno;
  const TableLock lock;
  Connection* const connection = table.Find(fd);
  if (connection == nullptr) return std::nullopt;
  if (connection->state == State::kSettingUp) connection->state = State::kRelayed;
  if (connection->state != State::kDirect) return std::nullopt;
  if (how != SHUT_RD) connection->output_shut = true;
  const int error = engine.shut(connection->relay, how);
  // It shows from now on that there is nothing to wait for.
  if (error != EINVAL && how != SHUT_WR) {
    connection->input_shut = true;
    (void)real.shutdown.get()(fd, SHUT_RD);
  }
  errno = error != 0 ? error : before;
  return error != 0 ? -1 : 0;
}

void ShowReadinessOf(int fd) {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr || connection->polled) return;
  const KeptErrno kept;
  const TableLock lock;
  if (table.Find(fd) != connection || connection->polled.exchange(true)) return;
  if (connection->state == State::kDirect) engine.show(connection->relay, DuplicateHigh(fd));
}

void ShowEdgesOf(Connection& connection) {
  if (connection.by_edges.exchange(true) || connection.state != State::kDirect) return;
  engine.edges(connection.relay);
}

void TellOptions(const Connection& connection) {
  const int number = connection.number;
  const OptionsSet& set = connection.options_set;
  engine.options(connection.relay,
                 set.Has(OptionsSet::kReceiveTime) ? TimeOf(number, SO_RCVTIMEO) : 0,
                 set.Has(OptionsSet::kSendTime) ? TimeOf(number, SO_SNDTIMEO) : 0,
                 set.Has(OptionsSet::kUrgentInLine) && IsUrgentInLine(number));
}

void SwitchTaker::ShowReadiness(int fd) noexcept { ShowReadinessOf(fd); }

}  // namespace esdp::switching
