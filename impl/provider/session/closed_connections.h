#ifndef ESDP_IMPL_PROVIDER_SESSION_CLOSED_CONNECTIONS_H_
#define ESDP_IMPL_PROVIDER_SESSION_CLOSED_CONNECTIONS_H_

#include <cstddef>

#include "impl/base/ring.h"
#include "impl/provider/types.h"

namespace esdp::provider {

// What is left of a connection, for requests that come late.
struct ClosedConnection {
  ConnectionId id = ConnectionId::kNone;
  ConnectionCounters counters;
};

// The last connections of a shard that have ended.
//
//   Owns:     copies of what was added.
//   Threads:  the holder of the shard lock.
//   Blocks:   never; allocates at construction.
//   Units:    –
//   Errors:   unknown names give nullptr; the oldest of kRemembered makes room.
class ClosedConnections {
 public:
  static constexpr size_t kRemembered = 64;

  void Add(const ClosedConnection& closed) {
    if (closed_.full()) closed_.PopFront();
    (void)closed_.PushBack(closed);
  }

  const ClosedConnection* Find(ConnectionId id) const {
    for (const ClosedConnection& closed : closed_) {
      if (closed.id == id) return &closed;
    }
    return nullptr;
  }

 private:
  Ring<ClosedConnection> closed_{kRemembered};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_CLOSED_CONNECTIONS_H_
