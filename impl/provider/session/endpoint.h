#ifndef ESDP_IMPL_PROVIDER_SESSION_ENDPOINT_H_
#define ESDP_IMPL_PROVIDER_SESSION_ENDPOINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/address_key.h"
#include "impl/fabric/port.h"
#include "impl/provider/session/failures.h"
#include "impl/provider/session/visibility.h"
#include "impl/provider/transport/buffer_pool.h"
#include "impl/provider/transport/exposure.h"
#include "impl/provider/transport/queue_pair_phase.h"
#include "impl/provider/types.h"
#include "impl/sdp/connection.h"
#include "impl/sdp/interface/config.h"

namespace esdp::provider {

// What the application has asked of a connection that it makes, for a fabric to come.
struct Attempt {
  ConnectionOptions options;
  Address local;
  Time deadline = kTimeInfinite;
  bool has_next = false;  // there is another fabric to try
  std::string failures;   // of the fabrics that were tried
};

// One connection as the provider keeps it: the core and everything that its actions are carried out
// on. Touched by the holder of the shard lock alone.
struct Endpoint {
  explicit Endpoint(const sdp::Config& config) : core(config) {}

  ConnectionId id = ConnectionId::kNone;
  bool connecting = true;  // false: accepting; of the queue pair it has now
  Address local;
  Address peer;

  // What carries it, and the place of that among the shard's fabrics.
  fabric::Fabric* fabric = nullptr;
  uint8_t place = 0;

  sdp::Connection core;
  BufferPool pool;
  uint64_t receive_growth = 0;  // of the pool, as it counts for the shard
  Exposures exposures;
  uint64_t next_header = 0;  // header slots are used in turn

  fabric::QueuePairId queue_pair = fabric::QueuePairId::kNone;
  QueuePairPhase phase = QueuePairPhase::kConnecting;
  fabric::RequestId request = fabric::RequestId::kNone;  // accepting side, until answered
  Time connect_deadline = kTimeInfinite;
  std::optional<Attempt> attempt;  // connecting side, until it is connected

  // On its way from one queue pair to the next (sdp wire protocol, section 12).
  struct Return {  // the peer's request, which came before the old queue pair was gone
    fabric::RequestId request = fabric::RequestId::kNone;
    sdp::wire::Message hello;
  };
  fabric::QueuePairOptions options;                                // of every queue pair it gets
  fabric::ListenerId return_listener = fabric::ListenerId::kNone;  // where the peer comes back
  std::optional<Return> early_return;
  struct Move {  // that the front end has asked for, and that is not over
    sdp::OperationId operation{};
    uint64_t tag = 0;
  };
  std::optional<Move> move;
  bool moved = false;    // not on its first queue pair
  bool follows = false;  // its peer to another queue pair, and has not arrived
  uint64_t returns_rejected = 0;

  // The front end.
  ListenerId listener = ListenerId::kNone;
  std::optional<fabric::AddressKey> admitted;  // counted by Admission
  uint64_t half_open = kNoHandle;              // among the set-ups that have not come about
  bool counted = false;                        // against its listener's backlog
  Visibility visibility = Visibility::kUnannounced;

  // Why it ended.
  FailureDetails evidence;
  sdp::Outcome cause = sdp::Outcome::kDone;
  const char* reason = "";
  std::optional<Failure> failure;  // the root cause, once it is asked for
};

// What the core, the queue pair and the pool of a new connection are to be, by the application's
// wishes and the fabric's limits. `remote_invalidate`: our Hello may say that any key of ours may
// be invalidated.
struct Plan {
  sdp::Config core;
  fabric::QueuePairOptions queue_pair;
  BufferPool::Shape pool;
};
Plan MakePlan(const ConnectionOptions& options, const fabric::Limits& limits, bool connecting,
              const Address& local, const Address& peer, bool remote_invalidate);

ConnectionCounters CountersOf(const Endpoint& endpoint);

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_ENDPOINT_H_
