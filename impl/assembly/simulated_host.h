#ifndef ESDP_IMPL_ASSEMBLY_SIMULATED_HOST_H_
#define ESDP_IMPL_ASSEMBLY_SIMULATED_HOST_H_

#include <memory>

#include "absl/status/statusor.h"
#include "esdp/context.h"
#include "impl/fabric/sim/host_model.h"
#include "impl/fabric/sim/testbed/host.h"
#include "impl/fabric/sim/world.h"
#include "impl/fabric/types.h"

namespace esdp::assembly {

// A Context on a fabric of this world, with manual progress; `host`, where there is one, says what
// its work takes. Of `options` the fabric and the progress do not count. Errors as Context::Open.
absl::StatusOr<Context> OpenInWorld(const std::shared_ptr<fabric::sim::World>& world,
                                    const fabric::Limits& limits, ContextOptions options,
                                    std::shared_ptr<fabric::sim::HostModel> host = nullptr);

// On a host of a test-bed, whose device is of the InfiniBand family and has no memory windows: what
// is shown for one operation is registered for it.
absl::StatusOr<Context> OpenOnHost(const std::shared_ptr<fabric::sim::testbed::Host>& host,
                                   const ContextOptions& options);

}  // namespace esdp::assembly

#endif  // ESDP_IMPL_ASSEMBLY_SIMULATED_HOST_H_
