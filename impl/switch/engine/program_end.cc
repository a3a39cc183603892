#include "impl/switch/engine/program_end.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "impl/switch/engine/to_mark.h"
#include "impl/switch/pair_name.h"

namespace esdp::switching {
namespace {

std::atomic<bool> expects_urgent{false};
std::atomic<uint32_t> names_set{0};

}  // namespace

void ProgramEnd::SetNames(int descriptor, const ConnectionNames& names) {
  const uint64_t unique = uint64_t{static_cast<uint32_t>(getpid())} << 32 | names_set.fetch_add(1);
  sockaddr_un name;
  const socklen_t bytes = WritePairName(names, unique, name);
  (void)bind(descriptor, reinterpret_cast<const sockaddr*>(&name), bytes);
}

void ProgramEnd::ExpectUrgent() { expects_urgent.store(true); }

ProgramEnd::Result ProgramEnd::Read(void* to, size_t room, size_t& got, bool& urgent) const {
  const bool to_mark = expects_urgent.load();
  ssize_t bytes = 0;
  urgent = false;
  do {
    bytes = to_mark ? ReceiveToMark(descriptor_, to, room, urgent)
                    : recv(descriptor_, to, room, MSG_DONTWAIT);
  } while (bytes < 0 && errno == EINTR);
  got = bytes > 0 ? static_cast<size_t>(bytes) : 0;
  if (bytes > 0) return Result::kMoved;
  if (bytes == 0) return reset_->load() ? Result::kReset : Result::kEnded;
  return errno == EAGAIN ? Result::kAgain : Result::kReset;
}

ProgramEnd::Result ProgramEnd::Write(const void* from, size_t bytes, size_t& done,
                                     bool urgent) const {
  int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (urgent ? MSG_OOB : 0);
  ssize_t sent = 0;
  do {
    sent = send(descriptor_, from, bytes, flags);
    if (sent < 0 && errno == EOPNOTSUPP && urgent) {
      flags &= ~MSG_OOB;
      errno = EINTR;
    }
  } while (sent < 0 && errno == EINTR);
  done = sent > 0 ? static_cast<size_t>(sent) : 0;
  if (sent >= 0) return Result::kMoved;
  return errno == EAGAIN || errno == ENOBUFS ? Result::kAgain : Result::kEnded;
}

void ProgramEnd::EndOfInput() const { (void)shutdown(descriptor_, SHUT_WR); }

bool ProgramEnd::HasSpoken() const {
  pollfd one = {.fd = descriptor_, .events = POLLIN | POLLRDHUP, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

bool ProgramEnd::IsClosed() const {
  pollfd one = {.fd = descriptor_, .events = 0, .revents = 0};
  return poll(&one, 1, 0) == 1 && (one.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace esdp::switching
