#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/direct.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/relayed.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"

// What a connection is asked about itself. Of a relayed one the stream pair knows what concerns its
// buffers and times; names are remembered; the rest the TCP socket below answers.

namespace esdp::switching {
namespace {

using libc::Fail;
using libc::real;

int GiveName(const Name& name, socklen_t bytes, sockaddr* address, socklen_t* len) {
  if (bytes == 0) return Fail(ENOTCONN);
  if (address == nullptr || len == nullptr) return Fail(EFAULT);
  const auto* const from = reinterpret_cast<const char*>(&name);
  std::copy_n(from, std::min(bytes, *len), reinterpret_cast<char*>(address));
  *len = bytes;
  return 0;
}

template <typename Value>
int Give(const Value& kept, void* value, socklen_t* len) {
  if (value == nullptr || len == nullptr) return Fail(EFAULT);
  const auto bytes = std::min<socklen_t>(sizeof(kept), *len);
  std::copy_n(reinterpret_cast<const char*>(&kept), bytes, static_cast<char*>(value));
  *len = bytes;
  return 0;
}

// Where it is among kKeptOptions; -1: it is none of them.
int KeptOption(int level, int name) {
  if (level != IPPROTO_TCP) return -1;
  const auto* const found = std::find(kKeptOptions.begin(), kKeptOptions.end(), name);
  return found == kKeptOptions.end() ? -1 : static_cast<int>(found - kKeptOptions.begin());
}

bool IsRefused(int level, int name) {
  if (level == IPPROTO_TCP) {
    return name == TCP_ULP || name == TCP_REPAIR || name == TCP_ZEROCOPY_RECEIVE ||
           name == TCP_FASTOPEN_CONNECT || name == TCP_MD5SIG;
  }
  if (level != SOL_SOCKET) return false;
  return name == SO_ZEROCOPY || name == SO_ATTACH_FILTER || name == SO_ATTACH_BPF ||
         name == SO_LOCK_FILTER;
}

// What the stream pair itself has to know.
bool IsOfPair(int level, int name) {
  if (level != SOL_SOCKET) return false;
  switch (name) {
    case SO_ERROR:
    case SO_RCVTIMEO:
    case SO_SNDTIMEO:
    case SO_RCVLOWAT:
    case SO_OOBINLINE:
      return true;
    default:
      return false;
  }
}

// The one relayed by another process: its TCP socket is not here.
int OptionOfForeign(const Connection& connection, int level, int name, void* value,
                    socklen_t* len) {
  if (level == SOL_SOCKET && name == SO_TYPE) return Give<int>(SOCK_STREAM, value, len);
  if (level == SOL_SOCKET && name == SO_PROTOCOL) return Give<int>(IPPROTO_TCP, value, len);
  if (level == SOL_SOCKET && name == SO_DOMAIN) {
    return Give<int>(connection.names.local.any.sa_family, value, len);
  }
  if (value == nullptr || len == nullptr) return Fail(EFAULT);
  std::fill_n(static_cast<char*>(value), *len, 0);
  return 0;
}

SwitchTaker::Answer IoctlOfDirect(const Connection& connection, unsigned long request,
                                  void* argument) {
  const bool counts = request == FIONREAD;
  if ((!counts && request != SIOCATMARK) || connection.state != State::kDirect) return std::nullopt;
  const Moved answer = (counts ? engine.unread : engine.at_mark)(connection.relay);
  if (answer.bytes < 0) return std::nullopt;
  if (argument == nullptr) return Fail(EFAULT);
  *static_cast<int*>(argument) = static_cast<int>(answer.bytes);
  return 0;
}

}  // namespace

SwitchTaker::Answer SwitchTaker::GetSockName(int fd, sockaddr* address, socklen_t* len) noexcept {
  if (!IsSwitched(StateOf(fd))) return std::nullopt;
  const TableLock lock;
  const Connection* const connection = FindRelayed(fd);
  if (connection == nullptr) return std::nullopt;
  return GiveName(connection->names.local, connection->names.local_bytes, address, len);
}

SwitchTaker::Answer SwitchTaker::GetPeerName(int fd, sockaddr* address, socklen_t* len) noexcept {
  if (!IsSwitched(StateOf(fd))) return std::nullopt;
  const TableLock lock;
  const Connection* const connection = FindRelayed(fd);
  if (connection == nullptr) return std::nullopt;
  return GiveName(connection->names.peer, connection->names.peer_bytes, address, len);
}

SwitchTaker::Answer SwitchTaker::GetOption(int fd, int level, int name, void* value,
                                           socklen_t* len) noexcept {
  if (level == SOL_SOCKET && name == SO_ERROR) {
    const Connection* const connecting = table.Find(fd);
    if (connecting != nullptr && connecting->state == State::kConnecting) {
      const int result = real.getsockopt.get()(fd, level, name, value, len);
      int error = 0;
      if (result == 0 && *len >= sizeof(error)) {
        std::copy_n(static_cast<const char*>(value), sizeof(error),
                    reinterpret_cast<char*>(&error));
      }
      if (result == 0 && error == 0 && IsThisProcess()) (void)DecideConnected(fd);
      return result;
    }
  }
  if (!IsSwitched(StateOf(fd))) return std::nullopt;
  const TableLock lock;
  Connection* const connection = FindRelayed(fd);
  const bool is_error = level == SOL_SOCKET && name == SO_ERROR;
  if (is_error && connection != nullptr && TakeReset(*connection)) {
    return Give<int>(ECONNRESET, value, len);
  }
  if (connection == nullptr || IsOfPair(level, name)) return std::nullopt;
  if (const int kept = KeptOption(level, name); kept >= 0) {
    return Give(connection->kept_options[static_cast<size_t>(kept)], value, len);
  }
  if (level == SOL_SOCKET && name == SO_LINGER) return Give(connection->lingers, value, len);
  if (connection->foreign) return OptionOfForeign(*connection, level, name, value, len);
  return real.getsockopt.get()(connection->below, level, name, value, len);
}

SwitchTaker::Answer SwitchTaker::SetOption(int fd, int level, int name, const void* value,
                                           socklen_t len) noexcept {
  if (Connection* const known = table.Find(fd)) known->options_set.Note(level, name);
  if (!IsSwitched(StateOf(fd))) return std::nullopt;
  const TableLock lock;
  Connection* const connection = FindRelayed(fd);
  if (connection == nullptr) return std::nullopt;
  if (IsOfPair(level, name)) {
    const int result = real.setsockopt.get()(fd, level, name, value, len);
    if (result == 0) TellOptions(*connection);
    return result;
  }
  if (IsRefused(level, name)) return Fail(EOPNOTSUPP);
  if (const int kept = KeptOption(level, name); kept >= 0) {
    if (value == nullptr || len < sizeof(int)) return Fail(EINVAL);
    int number = 0;
    std::copy_n(static_cast<const char*>(value), sizeof(number), reinterpret_cast<char*>(&number));
    connection->kept_options[static_cast<size_t>(kept)] = number != 0 ? 1 : 0;
    return 0;
  }
  if (level == SOL_SOCKET && name == SO_LINGER && value != nullptr && len >= sizeof(linger)) {
    connection->lingers = *static_cast<const linger*>(value);
    return 0;
  }
  if (connection->foreign) return 0;
  return real.setsockopt.get()(connection->below, level, name, value, len);
}

// Of what is there to be read a request is nothing.
SwitchTaker::Answer SwitchTaker::Ioctl(int fd, unsigned long request, void* argument) noexcept {
  if (request == FIOSETOWN || request == SIOCSPGRP) {
    const int result = real.ioctl.get()(fd, request, argument);
    if (result == 0) RelayForSignals(fd);
    return result;
  }
  Connection* const connection = table.Find(fd);
  if (connection == nullptr || connection->state == State::kRelayed) return std::nullopt;
  if (request == FIONBIO) {
    // As F_SETFL: the engine's thread may be about to put something else under the number.
    const TableLock lock;
    const int result = real.ioctl.get()(fd, request, argument);
    if (result == 0) connection->non_blocking = *static_cast<const int*>(argument) != 0;
    return result;
  }
  if (IsSwitched(connection->state)) return IoctlOfDirect(*connection, request, argument);
  if (request != FIONREAD && request != SIOCATMARK) return std::nullopt;
  if (connection->state != State::kAccepted && connection->state != State::kSpoke) {
    return std::nullopt;
  }
  const int error = DecideBeforeRead(fd, true);
  if (error == 0) return std::nullopt;
  if (error != EAGAIN || argument == nullptr) return Fail(error);
  *static_cast<int*>(argument) = 0;
  return 0;
}

}  // namespace esdp::switching
