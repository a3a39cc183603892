#ifndef ESDP_IMPL_FABRIC_VERBS_MANAGER_ERROR_H_
#define ESDP_IMPL_FABRIC_VERBS_MANAGER_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace esdp::fabric::verbs {

// What errno says after a call of librdmacm has failed, as the port has it.
absl::Status ManagerError(const std::string& what);

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_MANAGER_ERROR_H_
