#ifndef ESDP_IMPL_FABRIC_QPIP_QPIP_FABRIC_H_
#define ESDP_IMPL_FABRIC_QPIP_QPIP_FABRIC_H_

#include <memory>

#include "absl/status/statusor.h"
#include "impl/fabric/port.h"
#include "impl/fabric/qpip/options.h"

namespace esdp::fabric::qpip {

// Opens queue pairs on TCP sockets: MPA, DDP and RDMAP on the wire, so that iWARP devices and
// Linux' software iWARP can be the peer. Needs no device, module or privilege.
//
// InvalidArgument when this system does not know the congestion control; ResourceExhausted when it
// is out of descriptors.
absl::StatusOr<std::unique_ptr<Fabric>> MakeQpipFabric(const QpipOptions& options = {});

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_QPIP_FABRIC_H_
