#ifndef ESDP_IMPL_PROVIDER_SESSION_SESSION_H_
#define ESDP_IMPL_PROVIDER_SESSION_SESSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/address_key.h"
#include "impl/fabric/port.h"
#include "impl/provider/rejection.h"
#include "impl/provider/session/failures.h"
#include "impl/provider/session/visibility.h"
#include "impl/provider/transport/transport.h"
#include "impl/provider/types.h"
#include "impl/sdp/connection.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::provider {

// What the application has asked of a connection that it makes, for a fabric to come.
struct Attempt {
  ConnectionOptions options;
  Address local;
  Time deadline = kTimeInfinite;
  int descriptor = -1;     // a connected TCP socket to use, or -1; the caller's
  bool has_next = false;   // there is another fabric to try
  std::string failures{};  // of the fabrics that were tried
};

// One connection: what SDP makes of a transport. The core and its transport, how they came about, and
// what the front end knows of them. Touched by the holder of the shard lock alone.
struct Session {
  explicit Session(const sdp::Config& config) : core(config) {}

  ConnectionId id = ConnectionId::kNone;
  bool connecting = true;  // false: accepting; of the queue pair it has now
  Visibility visibility = Visibility::kUnannounced;
  Address local;
  Address peer;

  Transport transport;
  sdp::Connection core;

  // Its set-up.
  Time connect_deadline = kTimeInfinite;
  std::optional<Attempt> attempt;  // connecting side, until it is connected
  uint8_t next_place = 0;          // of the fabric of its request, and of the next queue pair
  fabric::RequestId request = fabric::RequestId::kNone;  // accepting side, until answered
  ListenerId listener = ListenerId::kNone;
  std::optional<fabric::AddressKey> admitted;  // counted by Admission
  uint64_t half_open = kNoHandle;              // among the set-ups that have not come about
  bool counted = false;                        // against its listener's backlog

  // On its way from one queue pair to the next (sdp wire protocol, section 12).
  struct Return {  // the peer's request, which came before the old queue pair was gone
    uint8_t place = 0;
    fabric::RequestId request = fabric::RequestId::kNone;
    sdp::wire::Message hello;
  };
  bool any_fabric = false;  // it was planned for every fabric of the shard, and may move to each
  std::vector<fabric::ListenerId> return_listeners;  // where the peer comes back, by the place
  std::optional<Return> early_return;
  struct Move {  // that the front end has asked for, and that is not over
    sdp::OperationId operation{};
    uint64_t tag = 0;
  };
  std::optional<Move> move;
  bool moved = false;    // not on its first queue pair
  bool follows = false;  // its peer to another queue pair, and has not arrived
  // Following it: over a fabric that has not been tried. Followed: over one behind that of the peer's
  // request.
  bool has_another_way = false;
  uint64_t returns_rejected = 0;

  // Why it ended, beside what the transport says.
  Rejection rejection = Rejection::kNone;
  const char* message_field = "";
  sdp::Outcome cause = sdp::Outcome::kDone;
  const char* reason = "";
  std::optional<Failure> failure;  // the root cause, once it is asked for
};

ConnectionCounters CountersOf(const Session& session);
// All that is known of why it ended.
FailureDetails DetailsOf(const Session& session);

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_SESSION_H_
