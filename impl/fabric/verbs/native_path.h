#ifndef ESDP_IMPL_FABRIC_VERBS_NATIVE_PATH_H_
#define ESDP_IMPL_FABRIC_VERBS_NATIVE_PATH_H_

#include <infiniband/ib.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/calls.h"

namespace esdp::fabric::verbs {

// Connection profile A (sdp wire protocol, section 2.6) [R2.6.7]: SDP's own service ids, 0x1pppp
// for port pppp, which only InfiniBand has. The connection manager takes them as addresses of
// InfiniBand.

// Whether this port of the device, or with 0 any of them, is one of InfiniBand: RoCE's are not.
bool HasInfiniBand(const Calls& calls, ibv_context* device, uint8_t port);

// The two ends of a connection to SDP's service.
struct NativePath {
  sockaddr_ib source{};  // with a port of its own
  sockaddr_ib target{};
};
// `found` has resolved the peer's address, and so knows the GIDs of both ends.
NativePath PathOver(const rdma_cm_id& found, uint16_t local_port, uint16_t peer_port);

// The address of ours from which the system sends to `peer`; port 0. Unavailable where there is no
// way.
absl::StatusOr<Address> LocalTowards(const Address& peer);

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_NATIVE_PATH_H_
