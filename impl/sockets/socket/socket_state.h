#ifndef ESDP_IMPL_SOCKETS_SOCKET_SOCKET_STATE_H_
#define ESDP_IMPL_SOCKETS_SOCKET_SOCKET_STATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/socket.h"
#include "impl/provider/types.h"
#include "impl/sockets/listener/listener_state.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

class ContextState;

// What stands behind a Socket: its options, its name, and what it has become. It begins as neither
// a stream nor a listener; Connect or an Accept make it the one, Listen the other.
//
//   Owns:     its stream and its listener; the Context, as long as a handle lives.
//   Threads:  any. Its lock is never held while the shard is called; the stream's may be taken
//             under it, never the other way.
//   Blocks:   never.
//   Units:    –
//   Errors:   those of socket.h.
class SocketState : public std::enable_shared_from_this<SocketState> {
 public:
  SocketState(std::shared_ptr<ContextState> context, SocketId id, Family family,
              const SocketOptions& options);
  static absl::Status CheckOptions(const SocketOptions& options);
  // A keep-alive time as it can be had: rounded up, and at most nine hours.
  static absl::Duration WholeSeconds(absl::Duration idle);

  SocketId id() const { return id_; }
  ContextState& context() { return *context_; }
  // Every socket has one, which is idle unless it is connected: a transfer takes no detour to it.
  StreamState& stream() { return stream_; }
  // Null where it does not listen.
  ListenerState* listener() const;
  // Close was called, or the handle is gone.
  bool closing() const { return closing_; }
  // Why its stream carries nothing, where the stream itself has never begun.
  absl::Status WhyNotConnected() const;

  absl::Status Bind(const Address& address);
  absl::Status Listen(int backlog);
  absl::StatusOr<OpId> Connect(const Address& address, const OpArgs& args);
  absl::Status ListenOver(int descriptor);
  absl::StatusOr<OpId> ConnectOver(int descriptor, const OpArgs& args);
  absl::StatusOr<OpId> Accept(int count, const OpArgs& args);
  absl::StatusOr<OpId> Poll(uint32_t mask, const OpArgs& args);
  absl::StatusOr<OpId> Close(CloseMode mode, const OpArgs& args);
  absl::Status Cancel(OpId op, CancelMode mode);
  int CancelAll(Direction direction);
  // The handle is gone.
  void Drop();
  // Nobody will hear how it ends: what a graceful Close waits for is not waited for.
  void DropAlsoClosing();
  // Closes in order, without an event.
  void CloseQuietly();
  void Abort();

  absl::Status SetOption(const Option& option);
  absl::StatusOr<Option> GetOption(OptionName name) const;
  // What an accepted connection takes over from its listener.
  SocketOptions OptionsInForce() const;
  Transport transport() const;
  SocketStats Stats() const;
  Address local() const;
  Address peer() const { return stream_.peer(); }

  // From the shard, under its lock.
  void BecomeAccepted(provider::ConnectionId connection, const Address& local, const Address& peer,
                      uint8_t fabric, SocketId listener);
  void OnDeadline(OpId op, EventType type);

 private:
  // kClosed: without ever having been the one or the other.
  enum class Role : uint8_t { kNone, kStream, kListener, kClosed };

  using BeginListening = std::function<absl::Status(ListenerState&, const Address& bound_to)>;
  absl::Status BecomeListener(const BeginListening& begin);
  using BeginConnecting = std::function<absl::Status(Operation&, const Address& bound_to)>;
  absl::StatusOr<OpId> BecomeStream(const OpArgs& args, const BeginConnecting& begin);
  // Under the lock.
  absl::Status Become(Role role);
  // From now on it is closing; answers what it was. Under the lock.
  Role BeginClosing();
  void FinishPoll(OpId op, const absl::Status& status);
  absl::Status SetMode(const Option& option);
  provider::ConnectionOptions ToConnectionOptions() const;

  const std::shared_ptr<ContextState> context_;
  const SocketId id_;
  const Family family_;

  std::atomic<Role> role_{Role::kNone};  // changed under the lock
  std::atomic<bool> closing_{false};     // likewise

  // From the change of a delivery mode until the shard has been told, so that it hears the last one
  // last. Taken before mutex_.
  std::mutex modes_mutex_;
  mutable std::mutex mutex_;
  SocketOptions options_;
  Address bound_to_;

  StreamState stream_;
  std::unique_ptr<ListenerState> listener_;  // from the first Listen on
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_SOCKET_SOCKET_STATE_H_
