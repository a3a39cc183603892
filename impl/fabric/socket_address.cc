#include "impl/fabric/socket_address.h"

#include <netinet/in.h>

namespace esdp::fabric {
namespace {

constexpr size_t kIpv4At = 12;  // in Address::bytes

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

}  // namespace esdp::fabric
