#include "impl/assembly/simulated_host.h"

#include <cstdint>
#include <utility>

#include "impl/fabric/sim/sim_fabric.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/context/log_limit.h"

namespace esdp::assembly {

absl::StatusOr<Context> OpenInWorld(const std::shared_ptr<fabric::sim::World>& world,
                                    const fabric::Limits& limits, ContextOptions options,
                                    std::shared_ptr<fabric::sim::HostModel> host) {
  options.fabric = "sim";
  options.progress = Progress::kManual;
  const auto make_shard = [&](provider::Observer& observer, const provider::ShardOptions& wanted)
      -> absl::StatusOr<std::unique_ptr<provider::Shard>> {
    auto fabric = fabric::sim::MakeSimFabric(world, limits, host);
    if (!fabric.ok()) return fabric.status();
    return provider::Shard::Create(*std::move(fabric), observer, wanted);
  };
  auto log = std::make_shared<sockets::LogLimit>(options.log, options.log_burst);
  auto state = sockets::ContextState::Open(options, {Transport::kSim}, make_shard, std::move(log));
  if (!state.ok()) return state.status();
  (*state)->set_companion(world);
  return sockets::ContextAccess::Make(*std::move(state));
}

absl::StatusOr<Context> OpenOnHost(const std::shared_ptr<fabric::sim::testbed::Host>& host,
                                   const ContextOptions& options) {
  fabric::Limits limits = fabric::sim::DefaultSimLimits();
  limits.initiator_speaks_first = false;
  limits.reads_in_flight_max = static_cast<uint32_t>(host->parameters().device_reads_in_flight);
  limits.windows = limits.remote_invalidate = false;
  return OpenInWorld(host->shared_world(), limits, options, host);
}

}  // namespace esdp::assembly
