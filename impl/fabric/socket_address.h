#ifndef ESDP_IMPL_FABRIC_SOCKET_ADDRESS_H_
#define ESDP_IMPL_FABRIC_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include "absl/status/statusor.h"
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
// ::ffff:a.b.c.d of IPv6, by which a socket of IPv6 carries IPv4, as a.b.c.d; any other as it is.
Address Unmapped(const Address& address);

// The two ends of a connected TCP socket, unmapped.
struct TcpEnds {
  Address local;
  Address peer;
};
// InvalidArgument where the descriptor is no such socket.
absl::StatusOr<TcpEnds> EndsOf(int descriptor);

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_SOCKET_ADDRESS_H_
