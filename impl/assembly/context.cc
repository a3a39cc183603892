#include "esdp/context.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/assembly/fabric_name.h"
#include "impl/base/status.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "impl/fabric/sim/world.h"
#include "impl/fabric/verbs/verbs_fabric.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/context/log_limit.h"
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

std::string WhyNotVerbs(const absl::Status& status) {
  return "verbs: " + std::string(FromAbsl(status.message()));
}

using Log = std::function<void(std::string_view)>;

absl::StatusOr<std::unique_ptr<fabric::Fabric>> MakeQpip(const ContextOptions& options,
                                                         const Log& log) {
  fabric::qpip::QpipOptions qpip;
  qpip.congestion_control = options.congestion_control;
  qpip.checksum = options.checksum;
  qpip.lend_pages = options.lend_pages;
  qpip.log = log;
  return fabric::qpip::MakeQpipFabric(qpip);
}

// In the order in which they are tried.
struct Fabrics {
  std::vector<Transport> transports;
  std::vector<std::unique_ptr<fabric::Fabric>> opened;

  absl::Status Add(Transport transport, absl::StatusOr<std::unique_ptr<fabric::Fabric>> fabric) {
    if (!fabric.ok()) return fabric.status();
    transports.push_back(transport);
    opened.push_back(*std::move(fabric));
    return absl::OkStatus();
  }
};

// The device that is named, or all that could lead somewhere: of these it is enough that one opens.
// That there is none is nothing to talk about where qpip follows; that there is one that cannot be
// used is.
absl::Status AddVerbs(const ContextOptions& options, const assembly::FabricName& name,
                      Fabrics& fabrics) {
  const bool named = !name.device.empty();
  auto devices = named ? std::vector{name.device} : fabric::verbs::ActiveDevices();
  if (devices.empty()) devices.emplace_back();  // to hear why
  const auto manager = fabric::verbs::MakeManager();
  absl::Status failure;
  for (const std::string& device : devices) {
    auto verbs = fabric::verbs::MakeVerbsFabric(
        {.device = device, .profile = name.profile, .manager = manager});
    const absl::Status status = verbs.status();
    if (status.ok()) {
      ESDP_RETURN_IF_ERROR(fabrics.Add(Transport::kVerbs, std::move(verbs)));
      continue;
    }
    failure = MakeError(ErrorKind::kFabric, WhyNotVerbs(status));
    if (named) return failure;
    if (!absl::IsNotFound(status) && options.log) options.log(WhyNotVerbs(status));
  }
  return name.transport == Transport::kVerbs && fabrics.opened.empty() ? failure : absl::OkStatus();
}

absl::StatusOr<Fabrics> OpenFabrics(const ContextOptions& options, const assembly::FabricName& name,
                                    const std::shared_ptr<World>& world, const Log& log) {
  Fabrics fabrics;
  absl::Status status;
  switch (name.transport) {
    case Transport::kSim:
      status = fabrics.Add(name.transport, fabric::sim::MakeSimFabric(world));
      break;
    case Transport::kVerbs:
      status = AddVerbs(options, name, fabrics);
      break;
    case Transport::kQpip:
      status = fabrics.Add(name.transport, MakeQpip(options, log));
      break;
    default:
      status = AddVerbs(options, name, fabrics);
      if (status.ok()) status = fabrics.Add(Transport::kQpip, MakeQpip(options, log));
  }
  if (!status.ok()) return status;
  return fabrics;
}

constexpr int kCpuMost = 1023;  // of the system's sets of processors

absl::Status CheckLimits(const ContextOptions& options) {
  const ContextLimits& limits = options.limits;
  const std::pair<const char*, uint32_t> bounds[] = {
      {"moves_max", options.moves_max},
      {"moves_at_once_max", options.moves_at_once_max},
      {"half_open_max", options.half_open_max},
      {"connections_max", limits.connections_max},
      {"connections_per_address_max", limits.connections_per_address_max},
      {"accept_rate", limits.accept_rate},
      {"accept_burst", limits.accept_burst}};
  for (const auto& [name, bound] : bounds) {
    if (bound >= 1 && bound <= 1u << 20) continue;
    return MakeError(ErrorKind::kInvalidArgument, std::string(name) + " must be 1 to 2^20");
  }
  if (limits.spare_connections_max > 1u << 20) {
    return MakeError(ErrorKind::kInvalidArgument, "spare_connections_max must be 0 to 2^20");
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const ContextOptions& options) {
  if (options.operations_max == 0 || options.operations_max > 1u << 22) {
    return MakeError(ErrorKind::kInvalidArgument, "operations_max must be 1 to 2^22");
  }
  if (absl::Status status = CheckLimits(options); !status.ok()) return status;
  if (options.peer_moves > PeerMoves::kUnguarded) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "peer_moves is none of kRefused, kGuarded and kUnguarded");
  }
  if (options.log_burst > 1u << 20) {
    return MakeError(ErrorKind::kInvalidArgument, "log_burst must be 0 to 2^20; 0 is no limit");
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
  (void)sockets::NoMemory();  // from now on it is there
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Context> {
    const auto name = assembly::ParseFabricName(options.fabric);
    if (!name.ok()) return name.status();
    if (absl::Status status = CheckOptions(options); !status.ok()) return status;
    std::shared_ptr<World> world;
    if (name->transport == Transport::kSim) {
      auto found = WorldFor(options, name->seed);
      if (!found.ok()) return found.status();
      world = *std::move(found);
    }
    const auto limit = std::make_shared<sockets::LogLimit>(options.log, options.log_burst);
    Log log;
    if (options.log) log = [limit](std::string_view line) { limit->Log(line); };
    auto fabrics = OpenFabrics(options, *name, world, log);
    if (!fabrics.ok()) return sockets::Adopt(fabrics.status());
    const auto make_shard = [&](provider::Observer& observer,
                                const provider::ShardOptions& shard_options)
        -> absl::StatusOr<std::unique_ptr<provider::Shard>> {
      return provider::Shard::Create(std::move(fabrics->opened), observer, shard_options);
    };
    auto state = ContextState::Open(options, fabrics->transports, make_shard, limit);
    if (!state.ok()) return state.status();
    (*state)->set_companion(world);
    return ContextAccess::Make(*std::move(state));
  });
}

}  // namespace esdp
