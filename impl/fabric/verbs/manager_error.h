#ifndef ESDP_IMPL_FABRIC_VERBS_MANAGER_ERROR_H_
#define ESDP_IMPL_FABRIC_VERBS_MANAGER_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::verbs {

// What errno says after a call of librdmacm has failed, as the port has it.
absl::Status ManagerError(const std::string& what);

// The same after rdma_bind_addr. Where one of two has a port on all addresses, the manager calls
// the address of the other not available: that is the port in use, AlreadyExists, where this host
// has the address.
absl::Status BindError(const std::string& what, const Address& address);

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_MANAGER_ERROR_H_
