#include "esdp/context.h"

#include <memory>
#include <string>
#include <utility>

#include "impl/assembly/fabric_name.h"
#include "impl/base/status.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "impl/fabric/sim/world.h"
#include "impl/fabric/verbs/verbs_fabric.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context_state.h"
#include "impl/sockets/errors.h"

// From the name of a fabric to a Context: the one place that knows every fabric.

namespace esdp {
namespace {

using fabric::sim::World;
using sockets::ContextAccess;
using sockets::ContextState;
using sockets::MakeError;

absl::StatusOr<std::shared_ptr<World>> WorldFor(const ContextOptions& options, uint64_t seed) {
  if (options.world_of == nullptr) {
    return std::make_shared<World>(fabric::sim::WorldOptions{.seed = seed});
  }
  const ContextState* other = ContextAccess::StateOf(*options.world_of);
  if (other == nullptr || other->transport() != Transport::kSim) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "world_of names a Context that lives in no simulated world: open it with the "
                     "fabric \"sim\"");
  }
  return std::static_pointer_cast<World>(other->companion());
}

absl::StatusOr<std::unique_ptr<fabric::Fabric>> MakeFabric(const ContextOptions& options,
                                                           const assembly::FabricName& name,
                                                           const std::shared_ptr<World>& world) {
  if (world != nullptr) return fabric::sim::MakeSimFabric(world);
  if (name.transport == Transport::kVerbs) {
    auto fabric = fabric::verbs::MakeVerbsFabric(
        {.device = name.device, .infiniband_port_space = name.infiniband_port_space});
    if (fabric.ok()) return fabric;
    return MakeError(ErrorKind::kFabric,
                     "verbs: " + std::string(FromAbsl(fabric.status().message())));
  }
  fabric::qpip::QpipOptions qpip;
  qpip.congestion_control = options.congestion_control;
  qpip.checksum = options.checksum;
  return fabric::qpip::MakeQpipFabric(qpip);
}

constexpr int kCpuMost = 1023;  // of the system's sets of processors

absl::Status CheckOptions(const ContextOptions& options) {
  if (options.operations_max == 0 || options.operations_max > 1u << 22) {
    return MakeError(ErrorKind::kInvalidArgument, "operations_max must be 1 to 2^22");
  }
  if (options.bounce_pool_bytes == 0 || options.bounce_pool_bytes > size_t{1} << 30) {
    return MakeError(ErrorKind::kInvalidArgument, "bounce_pool_bytes must be 1 to 2^30");
  }
  if (options.progress_cpu && (*options.progress_cpu < 0 || *options.progress_cpu > kCpuMost)) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "progress_cpu must be 0 to " + std::to_string(kCpuMost));
  }
  if (options.progress_spin < absl::ZeroDuration()) {
    return MakeError(ErrorKind::kInvalidArgument, "progress_spin must be 0 or longer");
  }
  if (options.world_of != nullptr && !options.fabric.starts_with("sim")) {
    return MakeError(ErrorKind::kInvalidArgument, "world_of goes with the fabric \"sim\" only");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Context> Context::Open(const ContextOptions& options) {
  const auto name = assembly::ParseFabricName(options.fabric);
  if (!name.ok()) return name.status();
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::shared_ptr<World> world;
  if (name->transport == Transport::kSim) {
    auto found = WorldFor(options, name->seed);
    if (!found.ok()) return found.status();
    world = *std::move(found);
  }
  const auto make_shard = [&](provider::Observer& observer,
                              const provider::ShardOptions& shard_options)
      -> absl::StatusOr<std::unique_ptr<provider::Shard>> {
    auto fabric = MakeFabric(options, *name, world);
    if (!fabric.ok()) return fabric.status();
    return provider::Shard::Create(*std::move(fabric), observer, shard_options);
  };
  auto state = ContextState::Open(options, name->transport, make_shard);
  if (!state.ok()) return state.status();
  (*state)->set_companion(world);
  return ContextAccess::Make(*std::move(state));
}

}  // namespace esdp
