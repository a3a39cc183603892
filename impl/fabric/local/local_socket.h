#ifndef ESDP_IMPL_FABRIC_LOCAL_LOCAL_SOCKET_H_
#define ESDP_IMPL_FABRIC_LOCAL_LOCAL_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/shared_memory.h"
#include "impl/fabric/types.h"

// Unix sockets by abstract name. The name is made of the address and the port, so that it means
// the same as they do to TCP: like them it belongs to the network namespace, and like them it is
// gone with its process.

namespace esdp::fabric::local {

// "esdp1/4/7f000001/5001"; "*" stands for a wildcard.
std::string NameOf(const Address& address);

// AlreadyExists where the name is taken, NotFound where the address is none of this host's.
absl::StatusOr<Descriptor> ListenAt(const Address& address, int backlog);

// The outcome of one try: `error` is 0 and the socket open, or why not. ECONNREFUSED: nobody
// listens; EAGAIN: too many wait there; EADDRNOTAVAIL: the address is none of this host's.
struct ConnectOutcome {
  int error = 0;
  Descriptor socket;
};
ConnectOutcome ConnectTo(const Address& address);

// Not open where nobody waits, or the system refuses: then errno tells.
Descriptor AcceptFrom(const Descriptor& listener);

// Anybody may take an abstract name. Whoever does not run as the same effective user is treated as
// if he was not there.
bool IsSameUser(int socket);
// Of this host, as far as programs may tell: something can be bound to it.
bool IsOwnAddress(const Address& address);

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_LOCAL_SOCKET_H_
