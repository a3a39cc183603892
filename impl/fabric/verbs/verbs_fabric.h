#ifndef ESDP_IMPL_FABRIC_VERBS_VERBS_FABRIC_H_
#define ESDP_IMPL_FABRIC_VERBS_VERBS_FABRIC_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "impl/base/clock.h"
#include "impl/fabric/port.h"
#include "impl/fabric/verbs/calls.h"

namespace esdp::fabric::verbs {

struct VerbsOptions {
  std::string device;  // as ibv_devices prints it; empty: the first with an active port
  // Meet in the connection manager's port space of InfiniBand and not in that of TCP: connection
  // profile C, which stock tshark takes for SDP. Not on iWARP.
  bool infiniband_port_space = false;
  const Calls* calls = nullptr;  // null: the libraries
  const Clock* clock = nullptr;  // outlives the fabric; null: the system's
};

// Opens an RDMA device through librdmacm. NotFound when there is none, or none of that name.
absl::StatusOr<std::unique_ptr<Fabric>> MakeVerbsFabric(const VerbsOptions& options = {});

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_VERBS_FABRIC_H_
