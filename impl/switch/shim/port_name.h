#ifndef ESDP_IMPL_SWITCH_SHIM_PORT_NAME_H_
#define ESDP_IMPL_SWITCH_SHIM_PORT_NAME_H_

#include <cstdint>

// That a process of this host accepts SDP on a port is told by an abstract unix name: such names
// live as long as the process, in the network namespace, as ports do.

namespace esdp::switching {

// A descriptor that holds the name; -1 where another process does.
int HoldPortName(uint16_t port);
bool PortNameIsHeld(uint16_t port);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_PORT_NAME_H_
