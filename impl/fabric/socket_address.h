#ifndef ESDP_IMPL_FABRIC_SOCKET_ADDRESS_H_
#define ESDP_IMPL_FABRIC_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include "impl/fabric/types.h"

namespace esdp::fabric {

// An address as the system's calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);

  sockaddr* pointer() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress ToSystem(const Address& address);
// The caller knows that it is one of IPv4 or IPv6.
Address FromSystem(const sockaddr* system);

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_SOCKET_ADDRESS_H_
