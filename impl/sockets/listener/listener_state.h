#ifndef ESDP_IMPL_SOCKETS_LISTENER_LISTENER_STATE_H_
#define ESDP_IMPL_SOCKETS_LISTENER_LISTENER_STATE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/socket.h"
#include "impl/provider/types.h"
#include "impl/sockets/stream/operation.h"
#include "impl/sockets/stream/waiting_polls.h"

namespace esdp::sockets {

class ContextState;
class SocketState;

// A socket that listens: the Accepts that wait for connections, the connections that wait for an
// Accept, and the Polls that wait for one of those.
//
//   Owns:     the connections that no Accept has seen; operations belong to the Context.
//   Threads:  any. Its lock is never held while the shard is called.
//   Blocks:   never.
//   Units:    –
//   Errors:   those of Listen and Accept in socket.h.
class ListenerState {
 public:
  // Part of `socket`, which outlives it.
  ListenerState(SocketState& socket, ContextState& context);

  SocketId id() const;
  // Once more only after a failure.
  absl::Status Listen(const Address& address, int backlog,
                      const provider::ConnectionOptions& accepted);
  // For the one connection that this connected TCP socket is.
  absl::Status ListenOver(int descriptor, const provider::ConnectionOptions& accepted);
  absl::StatusOr<OpId> Accept(int count, const OpArgs& args);
  // Ends one Accept, unless it has ended.
  void FinishAccept(OpId op, const absl::Status& status);
  // Readable: a connection waits that no Accept is there for. Readable and failed: none will come.
  // No other bit ever holds.
  absl::StatusOr<OpId> Poll(uint32_t mask, const OpArgs& args);
  WaitingPolls& polls() { return polls_; }
  // Ends every Accept and Poll, and drops the connections that nobody has taken. Allocates nothing: the
  // destructor of a handle may be what calls.
  void Close();

  Address local() const;
  uint8_t fabric() const { return fabric_; }
  uint64_t ended_before_accept() const;

  // From the shard, under its lock.
  void OnIncoming(provider::ConnectionId connection, const Address& local, const Address& peer,
                  uint8_t fabric);
  // None will come: what waits ends so, and what comes.
  void OnFailed(const provider::Failure& failure);
  // The connection of that socket has ended: where no Accept has seen it, none will. May throw
  // std::bad_alloc where it was the only one.
  void OnIncomingEnded(SocketId accepted, const provider::Failure& cause);
  // Pairs waiting Accepts with waiting connections, as far as event slots are free.
  void Match();

 private:
  using Named = std::function<void(provider::ListenerId)>;
  using Tell = std::function<absl::StatusOr<provider::ListenerId>(const Named&)>;
  // `tell` tells the shard; of a reference, which takes no memory.
  absl::Status Begin(const Address& address, const Tell& tell);
  void FinishAccepts(const absl::Status& status);
  void Fail(const absl::Status& why);
  uint32_t PollBits() const;
  void MatchAll();  // may throw std::bad_alloc
  // Takes the slot for the event of the first connection; `*last` is the Accept that ends with it.
  // False: the queue of that Accept is full, and will match again.
  bool ReserveForFirst(Operation** last);
  Operation* TakeAccept();
  void TellPolls();

  SocketState& socket_;
  ContextState& context_;
  WaitingPolls polls_;
  std::atomic<uint8_t> fabric_{0};  // its place among the shard's
  std::atomic<bool> closed_{false};
  std::atomic<bool> of_one_{false};  // a connection that was there: no other will come

  mutable std::mutex mutex_;
  provider::ListenerId name_ = provider::ListenerId::kNone;
  Address local_;
  absl::Status failed_;  // why none will come
  std::deque<Operation*> accepts_;
  // No Accept has seen them. In the order in which they came, which is that of their names.
  std::map<SocketId, std::shared_ptr<SocketState>> arrived_;
  uint64_t ended_before_accept_ = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_LISTENER_LISTENER_STATE_H_
