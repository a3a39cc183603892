#include "impl/exs/plain.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include "esdp/options.h"
#include "impl/exs/convert.h"

namespace esdp::exs {
namespace {

int OptionOf(int fd, int name) {
  int value = -1;
  socklen_t len = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

// Where it was bound; nothing where it was not.
std::optional<Address> BoundTo(int fd) {
  sockaddr_storage bound{};
  socklen_t len = sizeof(bound);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &len) != 0) return std::nullopt;
  const auto* from = reinterpret_cast<const sockaddr*>(&bound);
  const std::optional<Address> address = ToAddress(from, len);
  if (!address.has_value()) return std::nullopt;
  const auto* in = reinterpret_cast<const sockaddr_in*>(from);
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(from);
  const bool any = bound.ss_family == AF_INET ? in->sin_addr.s_addr == INADDR_ANY
                                              : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
  return any && address->port() == 0 ? std::nullopt : address;
}

int Keep(int fd, Socket& made) {
  if (const std::optional<Address> bound = BoundTo(fd); bound.has_value()) {
    if (const absl::Status status = made.Bind(*bound); !status.ok()) return ErrnoOf(status);
  }
  linger waits{};
  socklen_t len = sizeof(waits);
  if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &waits, &len) != 0 || waits.l_onoff == 0) return 0;
  return ErrnoOf(made.SetOption({OptionName::kLinger, absl::Seconds(waits.l_linger)}));
}

}  // namespace

PlainKind PlainKindOf(int fd) {
  const int family = OptionOf(fd, SO_DOMAIN);
  if (family != AF_INET && family != AF_INET6) return PlainKind::kOther;
  if (OptionOf(fd, SO_PROTOCOL) != IPPROTO_TCP) return PlainKind::kOther;
  if (OptionOf(fd, SO_ACCEPTCONN) == 1) return PlainKind::kListens;
  tcp_info info{};
  socklen_t len = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0) return PlainKind::kOther;
  return info.tcpi_state == TCP_CLOSE ? PlainKind::kUnconnected : PlainKind::kConnected;
}

int WhyNoPost(int fd, int type, int error) {
  if (error != EOPNOTSUPP || PlainKindOf(fd) != PlainKind::kUnconnected) return error;
  return type == EXS_EVT_ACCEPT ? EINVAL : ENOTCONN;
}

int Adopt(Library& library, int fd, std::shared_ptr<ExsSocket>* socket) {
  const std::lock_guard lock(library.adopting());
  if (const int error = library.numbers().Find(fd, socket); error != EOPNOTSUPP) return error;
  if (PlainKindOf(fd) != PlainKind::kUnconnected) return EOPNOTSUPP;
  const int family = OptionOf(fd, SO_DOMAIN);
  absl::StatusOr<Socket> made =
      library.context().CreateSocket(family == AF_INET ? Family::kIpv4 : Family::kIpv6);
  if (!made.ok()) return ErrnoOf(made.status());
  if (const int error = Keep(fd, *made); error != 0) return error;
  if (const int error = library.helper().Start(); error != 0) return error;
  *socket = ExsSocket::MakeOver(fd, *std::move(made), family);
  if (*socket == nullptr) return errno;
  (*socket)->WatchNumber();
  library.numbers().Add(*socket);
  return 0;
}

}  // namespace esdp::exs
