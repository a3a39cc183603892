#ifndef ESDP_IMPL_ASSEMBLY_FABRIC_NAME_H_
#define ESDP_IMPL_ASSEMBLY_FABRIC_NAME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "esdp/socket.h"
#include "impl/fabric/verbs/profile.h"

namespace esdp::assembly {

// What ContextOptions::fabric names: one fabric, for "sim:42" its seed, for "verbs:rxe0" its
// device; "verbs:rxe0:ib" meets peers in the port space of InfiniBand (connection profile C),
// "verbs:mlx5_0:native" those in kernels by SDP's own service ids (A).
// "auto" names none: each socket takes the first that leads to its peer, shared memory, a device or
// qpip; "auto:nolocal" does without shared memory, as does "auto:rxe0", which names the device.
struct FabricName {
  Transport transport = Transport::kNone;
  uint64_t seed = 1;
  bool with_local = true;   // of "auto"
  std::string device = {};  // empty: the first with an active port
  fabric::verbs::Profile profile = fabric::verbs::Profile::kTcp;
};

// InvalidArgument lists the known names.
absl::StatusOr<FabricName> ParseFabricName(const std::string& text);

}  // namespace esdp::assembly

#endif  // ESDP_IMPL_ASSEMBLY_FABRIC_NAME_H_
