#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "impl/exs/convert.h"
#include "impl/exs/entry.h"

// exs_socket and the calls that answer at once: names, options, flags of the descriptor.

namespace esdp::exs {
namespace {

Answer MakeSocket(Library& library, int family, int type, int protocol) {
  if (family != AF_INET && family != AF_INET6) return Failed(EAFNOSUPPORT);
  if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM) return Failed(EPROTONOSUPPORT);
  if (protocol != 0 && protocol != IPPROTO_TCP) return Failed(EPROTONOSUPPORT);
  absl::StatusOr<Socket> made =
      library.context().CreateSocket(family == AF_INET ? Family::kIpv4 : Family::kIpv6);
  if (!made.ok()) return Failed(ErrnoOf(made.status()));
  const std::shared_ptr<ExsSocket> socket = ExsSocket::Make(*std::move(made), family);
  if (socket == nullptr) return Failed(errno);
  // From the first socket on there is somebody to see to the end of the process.
  if (const int error = library.helper().Start(); error != 0) return Failed(error);
  socket->WatchNumber();
  library.numbers().Add(socket);
  return Value(socket->number());
}

Answer Bind(ExsSocket& socket, const sockaddr* address, socklen_t len) {
  if (address == nullptr) return Failed(EFAULT);
  const std::optional<Address> to = ToAddress(address, len);
  if (!to.has_value()) return Failed(len < sizeof(sa_family_t) ? EINVAL : EAFNOSUPPORT);
  const int error = ErrnoOf(socket.socket().Bind(*to));
  return Failed(error == ENOTCONN ? EINVAL : error);  // it is bound, connected or listens
}

Answer Name(const Address& name, sockaddr* address, socklen_t* len) {
  if (address == nullptr || len == nullptr) return Failed(EFAULT);
  sockaddr_storage whole;
  const socklen_t length = FromAddress(name, &whole);
  const char* from = reinterpret_cast<const char*>(&whole);
  std::copy_n(from, std::min(*len, length), reinterpret_cast<char*>(address));
  *len = length;
  return Value(0);
}

bool Connected(ExsSocket& socket) { return socket.socket().peer().port() != 0; }

// --- options -------------------------------------------------------------------------------------

template <typename T>
Answer Give(const T& value, void* out, socklen_t* len) {
  if (out == nullptr || len == nullptr) return Failed(EFAULT);
  const char* from = reinterpret_cast<const char*>(&value);
  const socklen_t length = std::min<socklen_t>(*len, sizeof(value));
  std::copy_n(from, length, static_cast<char*>(out));
  *len = length;
  return Value(0);
}

template <typename T>
const T* Given(const void* value, socklen_t len) {
  return len >= sizeof(T) ? static_cast<const T*>(value) : nullptr;
}

Answer SetBelow(ExsSocket& socket, const Option& option) {
  return Failed(ErrnoOf(socket.socket().SetOption(option)));
}

Answer SetLinger(ExsSocket& socket, const linger* value) {
  if (value == nullptr || value->l_linger < 0) return Failed(EINVAL);
  const absl::Duration wait =
      value->l_onoff != 0 ? absl::Seconds(value->l_linger) : SocketOptions{}.linger;
  return SetBelow(socket, {OptionName::kLinger, wait});
}

Answer SetFlag(const int* value) {  // one that is always on
  return Failed(value != nullptr && *value != 0 ? 0 : EINVAL);
}

std::optional<OptionName> ThresholdOf(int level, int name) {
  if (level != SOL_EXSX) return std::nullopt;
  if (name == EXSX_SO_ZCOPY_SEND_MIN) return OptionName::kZcopySendMin;
  if (name == EXSX_SO_ZCOPY_RECV_MIN) return OptionName::kZcopyRecvMin;
  return std::nullopt;
}

std::optional<Way> NoticeOf(int name) {
  if (name == SO_ASYNC_SEND_TIMEOUT) return Way::kSending;
  if (name == SO_ASYNC_RECV_TIMEOUT) return Way::kReceiving;
  return std::nullopt;
}

Answer SetNotice(Library& library, ExsSocket& socket, Way way, const void* value, socklen_t len) {
  const auto* whole =
      len == sizeof(exsx_timeout_t) ? static_cast<const exsx_timeout_t*>(value) : nullptr;
  const auto* period = len == sizeof(timeval) ? static_cast<const timeval*>(value)
                       : whole != nullptr     ? &whole->exsx_to_period
                                              : nullptr;
  if (period == nullptr) return Failed(EINVAL);
  const std::optional<absl::Duration> wait = ToDuration(*period);
  const int flags = whole != nullptr ? whole->exsx_to_flags : 0;
  if (!wait.has_value() || (flags & ~EXS_TIMEOUT_ONCE) != 0) return Failed(EINVAL);
  if (const int error = library.helper().Start(); error != 0) return Failed(error);
  socket.SetNotice(way, {*wait, flags != 0});
  return Value(0);
}

Answer GetNotice(const ExsSocket& socket, Way way, void* value, socklen_t* len) {
  const NoticeOption option = socket.GetNotice(way);
  exsx_timeout_t whole{};
  whole.exsx_to_period = absl::ToTimeval(option.period);
  whole.exsx_to_flags = option.once ? EXS_TIMEOUT_ONCE : 0;
  const bool fits = len != nullptr && *len >= sizeof(whole);
  return fits ? Give(whole, value, len) : Give(whole.exsx_to_period, value, len);
}

Answer SetOption(Library& library, ExsSocket& socket, int level, int name, const void* value,
                 socklen_t len) {
  if (value == nullptr) return Failed(EFAULT);
  if (const std::optional<OptionName> threshold = ThresholdOf(level, name)) {
    const auto* bytes = Given<uint64_t>(value, len);
    return bytes == nullptr ? Failed(EINVAL) : SetBelow(socket, {*threshold, *bytes});
  }
  if (level == SOL_EXSX && name == EXSX_SO_REGISTER_FAILURES) return Failed(EINVAL);
  if (level == IPPROTO_TCP && name == TCP_NODELAY) return SetFlag(Given<int>(value, len));
  if (level != SOL_SOCKET) return Failed(ENOPROTOOPT);
  if (const auto way = NoticeOf(name)) return SetNotice(library, socket, *way, value, len);
  switch (name) {
    case SO_LINGER:
      return SetLinger(socket, Given<linger>(value, len));
    case SO_REUSEADDR:
      return Failed(Given<int>(value, len) == nullptr ? EINVAL : 0);
    case SO_ASYNC_RECV_ORDERED:
      return SetFlag(Given<int>(value, len));
    default:
      return Failed(ENOPROTOOPT);
  }
}

Answer GetLinger(ExsSocket& socket, void* value, socklen_t* len) {
  const absl::StatusOr<Option> found = socket.socket().GetOption(OptionName::kLinger);
  if (!found.ok()) return Failed(ErrnoOf(found.status()));
  const auto seconds = absl::ToInt64Seconds(std::get<absl::Duration>(found->value));
  return Give(linger{1, static_cast<int>(seconds)}, value, len);
}

Answer GetOption(ExsSocket& socket, int level, int name, void* value, socklen_t* len) {
  if (const std::optional<OptionName> threshold = ThresholdOf(level, name)) {
    const absl::StatusOr<Option> found = socket.socket().GetOption(*threshold);
    if (!found.ok()) return Failed(ErrnoOf(found.status()));
    return Give(std::get<uint64_t>(found->value), value, len);
  }
  if (level == SOL_EXSX && name == EXSX_SO_REGISTER_FAILURES) {
    return Give(socket.register_failures(), value, len);
  }
  if (level == IPPROTO_TCP && name == TCP_NODELAY) return Give(1, value, len);
  if (level != SOL_SOCKET) return Failed(ENOPROTOOPT);
  if (const auto way = NoticeOf(name)) return GetNotice(socket, *way, value, len);
  switch (name) {
    case SO_LINGER:
      return GetLinger(socket, value, len);
    case SO_REUSEADDR:
    case SO_ASYNC_RECV_ORDERED:
      return Give(1, value, len);
    case SO_TYPE:
      return Give(static_cast<int>(SOCK_STREAM), value, len);
    case SO_DOMAIN:
      return Give(socket.family(), value, len);
    case SO_ERROR:
      return Give(0, value, len);
    case SO_ACCEPTCONN:
      return Give(socket.listening() ? 1 : 0, value, len);
    default:
      return Failed(ENOPROTOOPT);
  }
}

}  // namespace
}  // namespace esdp::exs

using esdp::exs::EnterSocket;
using esdp::exs::Failed;
using esdp::exs::Plain;

extern "C" {

int exs_socket(int family, int type, int protocol) {
  return esdp::exs::Enter(
      [&](auto& library) { return esdp::exs::MakeSocket(library, family, type, protocol); });
}

int exs_bind(int fd, const struct sockaddr* address, socklen_t len) {
  return EnterSocket(
      fd, [&](auto&, auto& socket) { return esdp::exs::Bind(socket, address, len); }, Plain::kTakes,
      [&] { return bind(fd, address, len); });
}

int exs_listen(int fd, int backlog) {
  return EnterSocket(
      fd, [&](auto&, auto& socket) { return Failed(socket.Listen(backlog)); }, Plain::kTakes,
      [&] { return listen(fd, backlog); });
}

int exs_getsockname(int fd, struct sockaddr* address, socklen_t* len) {
  return EnterSocket(
      fd,
      [&](auto&, auto& socket) { return esdp::exs::Name(socket.socket().local(), address, len); },
      Plain::kRefuses, [&] { return getsockname(fd, address, len); });
}

int exs_getpeername(int fd, struct sockaddr* address, socklen_t* len) {
  return EnterSocket(
      fd,
      [&](auto&, auto& socket) {
        if (!esdp::exs::Connected(socket)) return Failed(ENOTCONN);
        return esdp::exs::Name(socket.socket().peer(), address, len);
      },
      Plain::kRefuses, [&] { return getpeername(fd, address, len); });
}

int exs_setsockopt(int fd, int level, int name, const void* value, socklen_t len) {
  return EnterSocket(
      fd,
      [&](auto& library, auto& socket) {
        return esdp::exs::SetOption(library, socket, level, name, value, len);
      },
      Plain::kTakes, [&] { return setsockopt(fd, level, name, value, len); });
}

int exs_getsockopt(int fd, int level, int name, void* value, socklen_t* len) {
  return EnterSocket(
      fd,
      [&](auto&, auto& socket) { return esdp::exs::GetOption(socket, level, name, value, len); },
      Plain::kRefuses, [&] { return getsockopt(fd, level, name, value, len); });
}

int exs_fcntl(int fd, int command, long argument) {
  const bool known =
      command == F_GETFD || command == F_SETFD || command == F_GETFL || command == F_SETFL;
  const auto call = [&] {
    errno = EINVAL;
    return known ? fcntl(fd, command, argument) : -1;
  };
  return EnterSocket(
      fd,
      [&](auto&, auto&) {
        const int value = call();
        return value < 0 ? Failed(errno) : esdp::exs::Value(value);
      },
      Plain::kRefuses, call);
}

}  // extern "C"
