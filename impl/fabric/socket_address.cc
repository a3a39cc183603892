#include "impl/fabric/socket_address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace esdp::fabric {
namespace {

constexpr size_t kIpv4At = 12;  // in Address::bytes

int OptionOf(int descriptor, int name) {
  int value = -1;
  socklen_t bytes = sizeof(value);
  return getsockopt(descriptor, SOL_SOCKET, name, &value, &bytes) == 0 ? value : -1;
}

absl::Status NoConnection(const std::string& why) {
  return absl::InvalidArgumentError("the descriptor is no connected TCP socket: " + why);
}

}  // namespace

SocketAddress ToSystem(const Address& address) {
  SocketAddress out;
  if (address.family == Family::kIpv4) {
    auto* in = reinterpret_cast<sockaddr_in*>(&out.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(address.port);
    CopyBytes(std::as_writable_bytes(std::span(&in->sin_addr, 1)),
              std::as_bytes(std::span(address.bytes)).subspan(kIpv4At));
    out.bytes = sizeof(*in);
    return out;
  }
  auto* in6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  in6->sin6_family = AF_INET6;
  in6->sin6_port = htons(address.port);
  in6->sin6_scope_id = address.scope_id;
  CopyBytes(std::as_writable_bytes(std::span(&in6->sin6_addr, 1)),
            std::as_bytes(std::span(address.bytes)));
  out.bytes = sizeof(*in6);
  return out;
}

Address FromSystem(const sockaddr* system) {
  Address address;
  if (system->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(system);
    address.port = ntohs(in->sin_port);
    CopyBytes(std::as_writable_bytes(std::span(address.bytes)).subspan(kIpv4At),
              std::as_bytes(std::span(&in->sin_addr, 1)));
    return address;
  }
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(system);
  address.family = Family::kIpv6;
  address.port = ntohs(in6->sin6_port);
  address.scope_id = in6->sin6_scope_id;
  CopyBytes(std::as_writable_bytes(std::span(address.bytes)),
            std::as_bytes(std::span(&in6->sin6_addr, 1)));
  return address;
}

Address Unmapped(const Address& address) {
  const auto* const mark = address.bytes.data() + 10;
  const bool mapped =
      address.family == Family::kIpv6 && mark[0] == 0xff && mark[1] == 0xff &&
      std::all_of(address.bytes.data(), mark, [](uint8_t byte) { return byte == 0; });
  if (!mapped) return address;
  Address plain{.family = Family::kIpv4, .port = address.port};
  std::copy(address.bytes.begin() + kIpv4At, address.bytes.end(), plain.bytes.begin() + kIpv4At);
  return plain;
}

absl::StatusOr<TcpEnds> EndsOf(int descriptor) {
  const int protocol = OptionOf(descriptor, SO_PROTOCOL);
  if (protocol < 0) return NoConnection(strerror(errno));
  if (protocol != IPPROTO_TCP) return NoConnection("its protocol is another one");
  SocketAddress local;
  SocketAddress peer;
  if (getsockname(descriptor, local.pointer(), &local.bytes) != 0 ||
      getpeername(descriptor, peer.pointer(), &peer.bytes) != 0) {
    return NoConnection(strerror(errno));
  }
  return TcpEnds{Unmapped(FromSystem(local.pointer())), Unmapped(FromSystem(peer.pointer()))};
}

}  // namespace esdp::fabric
