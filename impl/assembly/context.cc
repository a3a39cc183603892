#include "esdp/context.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "impl/assembly/fabric_name.h"
#include "impl/assembly/fabric_table.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/context/log_limit.h"
#include "impl/sockets/errors.h"

// From options to a Context; fabric_table.h knows the fabrics.

namespace esdp {
namespace {

using sockets::ContextAccess;
using sockets::ContextState;
using sockets::MakeError;

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
  if (limits.file_pool_max < 1 << 20 || limits.file_threads > 64) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "file_pool_max must be 2^20 at least, and file_threads 0 to 64");
  }
  if (limits.spare_connections_max > 1u << 20) {
    return MakeError(ErrorKind::kInvalidArgument, "spare_connections_max must be 0 to 2^20");
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const ContextOptions& options, Transport transport) {
  if (options.operations_max == 0 || options.operations_max > 1u << 22) {
    return MakeError(ErrorKind::kInvalidArgument, "operations_max must be 1 to 2^22");
  }
  if (absl::Status status = CheckLimits(options); !status.ok()) return status;
  if (options.peer_moves > PeerMoves::kUnguarded) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "peer_moves is none of kRefused, kGuarded and kUnguarded");
  }
  if (options.local_share > LocalShare::kNever) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "local_share is none of kProved, kUser and kNever");
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
  if (options.world_of != nullptr && transport != Transport::kSim) {
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
    if (absl::Status status = CheckOptions(options, name->transport); !status.ok()) return status;
    const auto limit = std::make_shared<sockets::LogLimit>(options.log, options.log_burst);
    assembly::Log log;
    if (options.log) log = [limit](std::string_view line) { limit->Log(line); };
    auto opened = assembly::OpenFabrics(options, *name, log);
    if (!opened.ok()) return sockets::Adopt(opened.status());
    const auto make_shard = [&](provider::Observer& observer,
                                const provider::ShardOptions& shard_options)
        -> absl::StatusOr<std::unique_ptr<provider::Shard>> {
      return provider::Shard::Create(std::move(opened->fabrics), observer, shard_options);
    };
    auto state = ContextState::Open(options, opened->transports, make_shard, limit);
    if (!state.ok()) return state.status();
    (*state)->set_companion(opened->companion);
    return ContextAccess::Make(*std::move(state));
  });
}

}  // namespace esdp
