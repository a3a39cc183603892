#ifndef ESDP_IMPL_SOCKETS_CONTEXT_UNTAKEN_SOCKETS_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_UNTAKEN_SOCKETS_H_

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "esdp/event.h"
#include "impl/base/time.h"

namespace esdp::sockets {

class SocketState;

// Accepted connections that the application has been told of, or soon is, and has not taken. One
// whose event it has had for too long is given up: the event was dropped.
//
//   Owns:     the connections' sockets.
//   Threads:  any.
//   Blocks:   never.
//   Units:    instants of the shard's clock.
//   Errors:   –
class UntakenSockets {
 public:
  // How long an event may be there before its connection is given up; kDurationInfinite: for ever.
  explicit UntakenSockets(Duration within) : within_(within) {}

  // What came to one listener, by name.
  struct Untaken {
    std::shared_ptr<SocketState> socket;
    SocketId listener = SocketId::kNone;
  };
  using Sockets = std::map<SocketId, Untaken>;

  void Add(const std::shared_ptr<SocketState>& socket, SocketId listener);
  // Null where there is none of that name.
  std::shared_ptr<SocketState> Take(SocketId socket);
  // All of this listener. Takes no memory.
  Sockets TakeAllOf(SocketId listener);
  // The application has its event from now on. Answers when TakeOverdue is to be called, unless
  // that has been said and not been done.
  std::optional<Time> Seen(SocketId socket, Time now);
  // What is given up. `next`: when to call again; absent: when Seen says so.
  std::vector<std::shared_ptr<SocketState>> TakeOverdue(Time now, std::optional<Time>* next);
  void Clear();

 private:
  struct Sighting {
    SocketId socket = SocketId::kNone;
    Time overdue_at{};
  };
  void DropTaken();

  const Duration within_;
  std::mutex mutex_;
  Sockets sockets_;
  std::deque<Sighting> seen_;  // oldest first; some of them have been taken since
  bool is_awaited_ = false;    // a call of TakeOverdue
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_UNTAKEN_SOCKETS_H_
