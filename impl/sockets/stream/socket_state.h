#ifndef ESDP_IMPL_SOCKETS_STREAM_SOCKET_STATE_H_
#define ESDP_IMPL_SOCKETS_STREAM_SOCKET_STATE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/socket.h"
#include "impl/provider/observer.h"
#include "impl/provider/types.h"
#include "impl/sockets/memory/bounce_pool.h"
#include "impl/sockets/stream/operation.h"
#include "impl/sockets/stream/transfer_flags.h"

namespace esdp::sockets {

class ContextState;

// What stands behind a Socket: a connection, or a listener with the connections that nobody has
// taken yet.
//
//   Owns:     nothing but its own lists; operations belong to the Context.
//   Threads:  any. Its lock is never held while the shard is called.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   those of socket.h.
class SocketState : public std::enable_shared_from_this<SocketState> {
 public:
  SocketState(std::shared_ptr<ContextState> context, Family family, const SocketOptions& options);
  static absl::Status CheckOptions(const SocketOptions& options);
  // A keep-alive time as it can be had: rounded up, and at most nine hours.
  static absl::Duration WholeSeconds(absl::Duration idle);

  SocketId id() const { return id_; }
  void set_id(SocketId id) { id_ = id; }
  ContextState& context() { return *context_; }

  // The calls of the public class.
  absl::Status Bind(const Address& address);
  absl::Status Listen(int backlog);
  absl::StatusOr<OpId> Connect(const Address& address, const OpArgs& args);
  absl::StatusOr<OpId> Accept(int count, const OpArgs& args);
  absl::StatusOr<OpId> Shutdown(const OpArgs& args);
  absl::StatusOr<OpId> Close(CloseMode mode, const OpArgs& args);
  absl::Status Cancel(OpId op, CancelMode mode);
  int CancelAll(Direction direction);
  // The handle is gone.
  void Drop();
  // Nobody will hear how it ends: what a graceful Close waits for is not waited for.
  void DropAlsoClosing();

  absl::StatusOr<OpId> Post(EventType type, absl::Span<const Slice> slices,
                            const TransferFlags& flags, const OpArgs& args);
  absl::StatusOr<OpId> PostSendCopy(std::span<const std::byte> bytes, const TransferFlags& flags,
                                    const OpArgs& args);
  absl::StatusOr<OpId> PostRecvCopy(std::span<std::byte> bytes, const TransferFlags& flags,
                                    const OpArgs& args);
  absl::StatusOr<OpId> AwaitUrgent(const OpArgs& args);

  absl::StatusOr<OpId> Suspend(const OpArgs& args);
  SocketStats Stats() const;

  absl::Status SetOption(const Option& option);
  absl::StatusOr<Option> GetOption(OptionName name) const;
  // What an accepted connection takes over from its listener.
  SocketOptions OptionsInForce() const;
  Transport transport() const;
  Address local() const;
  Address peer() const;

  // From the shard, under its lock.
  void BecomeAccepted(provider::ConnectionId connection, const Address& local, const Address& peer,
                      uint8_t fabric);
  void OnIncoming(const std::shared_ptr<SocketState>& accepted);
  // The connection of that socket has ended: where no Accept has seen it, none will.
  void OnIncomingEnded(SocketId accepted);
  void OnConnected(const Address& local, const Address& peer, uint8_t fabric);
  void OnFailed(const provider::Failure& cause);
  void OnShutDown(const provider::Failure& failure);
  void OnResumed(const provider::Failure& failure);
  void OnClosed(const provider::Failure& cause, uint64_t bytes_received);
  void OnDeadline(OpId op, EventType type);
  // The connection had ended before this transfer came to it.
  void FinishTooLate(Operation& operation);
  // A transfer has had its event, or was never accepted. The socket may end with it.
  void OnTransferGone();
  BouncePool::Share& bounce_share() { return bounce_share_; }
  // Pairs waiting Accepts with waiting connections, as far as event slots are free.
  void Match();
  void Abort();
  // Closes in order, without an event.
  void CloseQuietly();
  // The application has taken this accepted connection.
  void AnnounceTaken();

 private:
  enum class Phase : uint8_t { kNew, kListening, kConnecting, kConnected, kEnded };

  void MatchAll();  // may throw std::bad_alloc
  absl::Status SetMode(const Option& option);
  provider::ConnectionOptions ToConnectionOptions() const;
  absl::Status CanTransfer(bool is_send) const;
  absl::Status CanSuspend() const;
  void FinishSuspend(const absl::Status& status);
  bool AtEndOfStream(bool is_send) const;
  absl::Status EndedStatus() const;
  absl::StatusOr<Operation*> NewTransfer(EventType type, const TransferFlags& flags,
                                         const OpArgs& args);
  // Whether a transfer of so many bytes is to try whether it can be over within its call.
  bool TriesImmediate(const TransferFlags& flags, uint64_t bytes);
  // It was, and has had its event; kNone where it has to go the common way.
  OpId TrySendImmediate(EventType type, std::span<const std::byte> bytes, const OpArgs& args);
  // Its bytes, where the processor reaches them and the slice is in order; else nothing.
  std::span<const std::byte> BytesOf(const Slice& slice) const;
  template <typename Fill>
  absl::StatusOr<OpId> FillAndLaunch(Operation& operation, Fill fill);
  absl::StatusOr<OpId> Launch(Operation& operation);
  void FinishAtEndOfStream(Operation& operation);
  absl::Status CheckSlice(const Slice& slice, bool is_send) const;
  absl::Status AddPiece(Operation& operation, const Slice& slice, bool is_send) const;
  // Of debug builds: refuses a receive into bytes that another one is filling.
  absl::Status ClaimMemory(const Operation& operation) const;
  void SubmitToConnection(provider::Request request);
  void StopListening();
  bool FinishAccept(OpId op, const absl::Status& status);
  void OnShutdownLate(OpId op);
  // The event of Close, once the connection and every transfer has ended.
  void MaybeFinishClose();
  absl::Status CloseStatus(const provider::Failure& cause) const;
  // Under the lock.
  void KeepCause(const provider::Failure& cause);

  const std::shared_ptr<ContextState> context_;
  const Family family_;
  SocketId id_ = SocketId::kNone;
  SocketId listener_id_ = SocketId::kNone;  // where it came in

  std::atomic<Phase> phase_{Phase::kNew};
  std::atomic<uint8_t> fabric_{0};  // its place among the shard's
  std::atomic<bool> write_shut_{false};
  std::atomic<bool> failed_{false};  // posts are refused with the cause, also before kEnded
  std::atomic<bool> closing_{false};
  // Sends and receives from before they are allowed until they are gone: what is being posted while
  // the connection ends must have its event before the socket's last one.
  std::atomic<uint32_t> transfers_{0};
  std::atomic<uint64_t> zcopy_send_min_;
  std::atomic<uint64_t> zcopy_recv_min_;
  std::atomic<bool> own_threshold_;  // zcopy_send_min was told for this socket
  std::atomic<bool> adaptive_threshold_;
  std::atomic<uint32_t> coalesce_max_;
  std::atomic<DeadlinePolicy> deadline_policy_;
  // Of the sends to come, those that need not try to be over at once: one has just failed to.
  std::atomic<uint8_t> untried_sends_{0};
  BouncePool::Share bounce_share_;
  std::atomic<provider::ConnectionId> connection_{provider::ConnectionId::kNone};

  // From the change of a delivery mode until the shard has been told, so that it hears the last one
  // last. Taken before mutex_.
  std::mutex modes_mutex_;
  mutable std::mutex mutex_;
  SocketOptions options_;
  provider::ListenerId listener_ = provider::ListenerId::kNone;
  Address local_;
  Address peer_;
  bool bound_ = false;
  provider::Failure cause_;                  // of the end
  std::atomic<uint64_t> bytes_received_{0};  // in all, once it has ended
  bool connect_cancelled_ = false;
  CloseMode close_mode_ = CloseMode::kGraceful;
  bool close_late_ = false;
  Operation* connect_ = nullptr;
  Operation* close_ = nullptr;
  Operation* closing_abort_ = nullptr;  // a later Close, which made that one an abort
  Operation* suspend_ = nullptr;
  absl::Status close_status_;
  std::vector<Operation*> shutdowns_;
  std::deque<Operation*> accepts_;
  // No Accept has seen them. In the order in which they came, which is that of their names.
  std::map<SocketId, std::shared_ptr<SocketState>> arrived_;
  uint64_t ended_before_accept_ = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_SOCKET_STATE_H_
