#include "impl/fabric/local/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "impl/fabric/socket_address.h"

namespace esdp::fabric::local {
namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr size_t kIpv4At = 12;  // in Address::bytes

struct UnixAddress {
  sockaddr_un storage{};
  socklen_t bytes = 0;

  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Abstract: behind a zero byte.
UnixAddress ToUnix(const Address& address) {
  const std::string name = NameOf(address);
  UnixAddress out;
  out.storage.sun_family = AF_UNIX;
  name.copy(out.storage.sun_path + 1, sizeof(out.storage.sun_path) - 1);
  out.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

absl::Status FromErrno(int error, const std::string& what) {
  const std::string text = what + ": " + std::strerror(error);
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(text);
    case EADDRNOTAVAIL:
      return absl::NotFoundError(text);
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

ConnectOutcome TryConnect(const Address& address) {
  ConnectOutcome outcome;
  outcome.socket = Descriptor(socket(AF_UNIX, kType, 0));
  if (!outcome.socket.is_open()) return {errno, {}};
  const UnixAddress name = ToUnix(address);
  if (connect(outcome.socket.number(), name.pointer(), name.bytes) == 0) {
    if (IsSameUser(outcome.socket.number())) return outcome;
    return {ECONNREFUSED, {}};
  }
  return {errno, {}};
}

}  // namespace

std::string NameOf(const Address& address) {
  constexpr char kDigits[] = "0123456789abcdef";
  const bool is_ipv4 = address.family == Family::kIpv4;
  std::string name = is_ipv4 ? "esdp1/4/" : "esdp1/6/";
  if (IsWildcard(address)) {
    name += '*';
  } else {
    for (size_t i = is_ipv4 ? kIpv4At : 0; i < address.bytes.size(); ++i) {
      name += kDigits[address.bytes[i] / 16];
      name += kDigits[address.bytes[i] % 16];
    }
    if (address.scope_id != 0) name += '%' + std::to_string(address.scope_id);
  }
  return name + '/' + std::to_string(address.port);
}

bool IsOwnAddress(const Address& address) {
  const int family = address.family == Family::kIpv4 ? AF_INET : AF_INET6;
  const Descriptor probe(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.is_open()) return false;
  Address any_port = address;
  any_port.port = 0;
  const SocketAddress system = ToSystem(any_port);
  return bind(probe.number(), system.pointer(), system.bytes) == 0;
}

absl::StatusOr<Descriptor> ListenAt(const Address& address, int backlog) {
  const std::string what = "cannot listen at " + ToString(address);
  if (!IsOwnAddress(address)) return FromErrno(EADDRNOTAVAIL, what);
  Descriptor listener(socket(AF_UNIX, kType, 0));
  if (!listener.is_open()) return FromErrno(errno, "cannot open a socket");
  const UnixAddress name = ToUnix(address);
  if (bind(listener.number(), name.pointer(), name.bytes) != 0) return FromErrno(errno, what);
  if (listen(listener.number(), std::max(backlog, 1)) != 0) return FromErrno(errno, what);
  return listener;
}

ConnectOutcome ConnectTo(const Address& address) {
  if (!IsOwnAddress(address)) return {EADDRNOTAVAIL, {}};
  ConnectOutcome outcome = TryConnect(address);
  if (outcome.error != ECONNREFUSED || IsWildcard(address)) return outcome;
  Address wildcard = address;
  wildcard.bytes.fill(0);
  wildcard.scope_id = 0;
  return TryConnect(wildcard);
}

Descriptor AcceptFrom(const Descriptor& listener) {
  return Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool IsSameUser(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

}  // namespace esdp::fabric::local
