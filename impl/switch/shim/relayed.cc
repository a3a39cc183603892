#include "impl/switch/shim/relayed.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/direct.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/table.h"

namespace esdp::switching {
namespace {

using libc::Fail;
using libc::real;

size_t RoomOf(const msghdr& message) {
  size_t room = 0;
  for (size_t i = 0; i < message.msg_iovlen; ++i) room += message.msg_iov[i].iov_len;
  return room;
}

// TCP's answer is thrown away beyond the room; a stream pair has nothing like it.
ssize_t Discard(int fd, const msghdr& message, int flags) {
  const size_t room = RoomOf(message);
  std::array<char, 4096> scratch;
  const bool peeks = (flags & MSG_PEEK) != 0, all = (flags & MSG_WAITALL) != 0;
  size_t done = 0;
  while (done < room) {
    const ssize_t got = real.recv.get()(fd, scratch.data(), std::min(room - done, scratch.size()),
                                        done == 0 || all ? flags : flags | MSG_DONTWAIT);
    if (got <= 0) return done > 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<size_t>(got);
    if (peeks) break;
  }
  return static_cast<ssize_t>(done);
}

// What came before the reset is read first.
ssize_t ReceiveReset(Connection& connection, int fd, const msghdr& message, int flags) {
  msghdr without = message;
  without.msg_name = nullptr;
  const ssize_t got = real.recvmsg.get()(fd, &without, flags);
  const bool is_told = got == 0 && RoomOf(message) != 0 && TakeReset(connection);
  return is_told ? Fail(ECONNRESET) : got;
}

// A stream pair tells a writer of nothing but a closed end. Of TCP a reset is told, once, to whoever
// comes first.
int WhyNobodyReads(int fd, int flags) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  (void)real.getsockopt.get()(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return error;
  if ((flags & MSG_NOSIGNAL) == 0) (void)pthread_kill(pthread_self(), SIGPIPE);
  return EPIPE;
}

}  // namespace

bool TakeReset(Connection& connection) { return connection.owes_reset.exchange(false); }

libc::Taker::Count ReceiveRelayed(int fd, msghdr& message, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return Fail(EAGAIN);
  Connection* const connection = table.Find(fd);
  if (connection != nullptr && connection->owes_reset) {
    return ReceiveReset(*connection, fd, message, flags);
  }
  if ((flags & MSG_TRUNC) != 0 && (flags & MSG_OOB) == 0) {
    return Discard(fd, message, flags & ~MSG_TRUNC);
  }
  if (message.msg_name == nullptr) return std::nullopt;
  // The name that the pair has is no address.
  msghdr without = message;
  without.msg_name = nullptr;
  const ssize_t got = real.recvmsg.get()(fd, &without, flags);
  message.msg_namelen = 0;
  message.msg_controllen = without.msg_controllen;
  message.msg_flags = without.msg_flags;
  return got;
}

// An address means nothing to a connected socket. Who relays it has to know of urgent bytes.
// Of no byte none is.
libc::Taker::Count SendRelayed(int fd, const msghdr& message, int flags) {
  if ((flags & MSG_OOB) != 0) {
    const Connection* const connection = table.Find(fd);
    if (connection == nullptr || connection->foreign) return Fail(EOPNOTSUPP);
    if (RoomOf(message) == 0) return 0;
    engine.expect_urgent();
  }
  if (message.msg_controllen != 0) return Fail(EINVAL);
  if (message.msg_iovlen > kMostPieces) return std::nullopt;
  msghdr without = message;
  without.msg_name = nullptr;
  without.msg_namelen = 0;
  const ssize_t sent = real.sendmsg.get()(fd, &without, (flags & ~MSG_FASTOPEN) | MSG_NOSIGNAL);
  return sent < 0 && errno == EPIPE ? Fail(WhyNobodyReads(fd, flags)) : sent;
}

}  // namespace esdp::switching
