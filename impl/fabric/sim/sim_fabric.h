#ifndef ESDP_IMPL_FABRIC_SIM_SIM_FABRIC_H_
#define ESDP_IMPL_FABRIC_SIM_SIM_FABRIC_H_

#include <memory>

#include "absl/status/statusor.h"
#include "impl/fabric/port.h"
#include "impl/fabric/sim/host_model.h"
#include "impl/fabric/sim/world.h"

namespace esdp::fabric::sim {

// What a simulated adapter can do. As it is made, like qpip: of the iWARP family, with windows and
// remote invalidate. With initiator_speaks_first false it is of the InfiniBand family: a message
// waits for its receive, and sends and writes complete when the peer has carried them out.
// virtual_time is always true, whatever is asked for.
Limits DefaultSimLimits();

// A fabric of a simulated world. All fabrics of one world share one space of addresses and ports:
// any IPv4 or IPv6 address and any port may be listened on, and is reached from every one of them.
// "Any" as a local address becomes 10.x.y.z or fd00::n, different for each fabric.
//
// The fabric keeps the world alive. fd() is readable while there is something to poll, at once.
// Everything else that happens, happens in Advance, or in the same calls of the World.
//
// `host`, where it is given, says what the host of this fabric takes for its work.
//
// ResourceExhausted when there is no descriptor for fd(); InvalidArgument when `limits` is out of
// range.
absl::StatusOr<std::unique_ptr<Fabric>> MakeSimFabric(const std::shared_ptr<World>& world,
                                                      const Limits& limits = DefaultSimLimits(),
                                                      std::shared_ptr<HostModel> host = nullptr);

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_SIM_FABRIC_H_
