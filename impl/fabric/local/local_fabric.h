#ifndef ESDP_IMPL_FABRIC_LOCAL_LOCAL_FABRIC_H_
#define ESDP_IMPL_FABRIC_LOCAL_LOCAL_FABRIC_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "impl/fabric/local/options.h"
#include "impl/fabric/port.h"

namespace esdp::fabric::local {

// Opens queue pairs between processes of one host and one user, over shared memory. Needs no
// device, module or privilege, and leaves nothing in a file system.
//
// Unimplemented where the system has no memory that can be sealed; ResourceExhausted when it is out
// of descriptors or memory.
absl::StatusOr<std::unique_ptr<Fabric>> MakeLocalFabric(const LocalOptions& options = {});

// Why peers cannot prove here that they may read our memory, and the cure; empty where they can.
std::string WhyCopiedTwice();

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_LOCAL_FABRIC_H_
