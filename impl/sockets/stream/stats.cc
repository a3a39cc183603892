#include <cstdint>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/stream/stream_state.h"

// What the connection has counted.

namespace esdp::sockets {
namespace {

struct Copied {
#define ESDP_CONNECTION_COUNTER(name) uint64_t name;
#include "impl/provider/connection_counters.def"
};
// A listener counts the one that is left.
static_assert(sizeof(SocketStats) == sizeof(Copied) + sizeof(SocketStats::ended_before_accept),
              "SocketStats has a counter that nobody counts");

}  // namespace

SocketStats StreamState::Stats() const {
  SocketStats stats;
  const provider::ConnectionId connection = connection_;
  const ContextCall call(&context_);
  if (connection == provider::ConnectionId::kNone || !call.ok()) return stats;
  const auto found = context_.shard().Counters(connection);
  if (!found.ok()) return stats;
  const provider::ConnectionCounters& from = *found;
#define ESDP_CONNECTION_COUNTER(name) stats.name = from.name;
#include "impl/provider/connection_counters.def"
  stats.payload_copies += bounce_share_.copies();
  stats.payload_copy_bytes += bounce_share_.copied_bytes();
  return stats;
}

}  // namespace esdp::sockets
