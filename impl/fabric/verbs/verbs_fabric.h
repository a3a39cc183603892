#ifndef ESDP_IMPL_FABRIC_VERBS_VERBS_FABRIC_H_
#define ESDP_IMPL_FABRIC_VERBS_VERBS_FABRIC_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "impl/base/clock.h"
#include "impl/fabric/port.h"
#include "impl/fabric/verbs/calls.h"
#include "impl/fabric/verbs/profile.h"

namespace esdp::fabric::verbs {

// The connection manager, which the fabrics of one Context share. It opens with the first of them.
class Manager;
std::shared_ptr<Manager> MakeManager(const Calls& calls = LibraryCalls());

struct VerbsOptions {
  std::string device = {};  // as ibv_devices prints it; empty: the first with an active port
  Profile profile = Profile::kTcp;
  // So that one listener on a wildcard hears of all their devices. All are used in one turn. Null:
  // one for this fabric.
  std::shared_ptr<Manager> manager = {};
  const Calls* calls = nullptr;  // null: the libraries
  const Clock* clock = nullptr;  // outlives the fabric; null: the system's
};

// Opens an RDMA device through librdmacm. NotFound when there is none, or none of that name.
absl::StatusOr<std::unique_ptr<Fabric>> MakeVerbsFabric(const VerbsOptions& options = {});

// Whether the system has a device at all, without a library of devices, which loads all its drivers.
bool HasAnyDevice();

// The devices with an active port, by name; none where there is none.
std::vector<std::string> ActiveDevices(const Calls& calls = LibraryCalls());

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_VERBS_FABRIC_H_
