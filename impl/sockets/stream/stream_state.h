#ifndef ESDP_IMPL_SOCKETS_STREAM_STREAM_STATE_H_
#define ESDP_IMPL_SOCKETS_STREAM_STREAM_STATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
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
#include "impl/sockets/errors.h"
#include "impl/sockets/file/behind_files.h"
#include "impl/sockets/memory/bounce_pool.h"
#include "impl/sockets/stream/immediate_sends.h"
#include "impl/sockets/stream/operation.h"
#include "impl/sockets/stream/stream_polls.h"
#include "impl/sockets/stream/transfer_flags.h"

namespace esdp::sockets {

class ContextState;
class SocketState;

// A connection of a socket, from Connect or from its arrival to its end: what it carries, and how
// it ends.
//
//   Owns:     nothing but its own lists; operations belong to the Context.
//   Threads:  any. Its lock is never held while the shard is called.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   those of socket.h.
class StreamState {
 public:
  // Part of `socket`, which outlives it.
  StreamState(SocketState& socket, ContextState& context, SocketId id, Family family);
  std::shared_ptr<StreamState> Self();  // keeps the socket

  // Takes over what transfers to come have to obey; by one thread at a time.
  void SetOptions(const SocketOptions& options);
  void SubmitModes(provider::ModeWish send, provider::ModeWish receive);  // from now on
  void AskForReadiness();  // the shard tells StreamPolls from now on
  StreamPolls& polls() { return polls_; }
  uint64_t UnreadBytes() const;

  // The operation is its own: where it fails, nobody hears of it. It can be called again then.
  absl::Status Connect(Operation& operation, const Address& local, const Address& peer,
                       const provider::ConnectionOptions& options, absl::Time deadline);
  absl::Status ConnectOver(Operation& operation, int descriptor,
                           const provider::ConnectionOptions& options, absl::Time deadline);
  absl::StatusOr<OpId> Post(EventType type, absl::Span<const Slice> slices,
                            const TransferFlags& flags, const OpArgs& args);
  // Each slice an operation. Returns how many were accepted: one at least.
  absl::StatusOr<size_t> PostBatch(EventType type, absl::Span<const Slice> slices,
                                   const TransferFlags& flags, const OpArgs& args,
                                   absl::Span<OpId> ids);
  absl::StatusOr<OpId> PostSendCopy(std::span<const std::byte> bytes, const TransferFlags& flags,
                                    const OpArgs& args);
  absl::StatusOr<OpId> PostRecvCopy(std::span<std::byte> bytes, const TransferFlags& flags,
                                    const OpArgs& args);
  absl::StatusOr<OpId> SendFile(const FilePlan& plan, const OpArgs& args);
  absl::StatusOr<OpId> RecvFile(const FileSink& sink, const OpArgs& args);
  absl::StatusOr<OpId> AwaitUrgent(const OpArgs& args);
  absl::StatusOr<OpId> Suspend(const OpArgs& args);
  absl::StatusOr<OpId> Shutdown(const OpArgs& args);
  void Cancel(OpId op, EventType type, provider::Transfer* transfer, CancelMode mode);
  // A send or receive: what has moved of it stays moved, and it ends there.
  void EndShort(OpId op);
  void OnTransferLate(OpId op);

  BehindFiles& behind_files() { return behind_files_; }
  void Submit(provider::Request&& request);
  void SubmitTransfer(provider::Transfer& transfer);
  void CancelTransfer(provider::Transfer& transfer, OpId tag, provider::CancelMode mode);
  absl::Status EndedStatus() const;
  // The connection has ended in order: a receive finds the end of the stream, as often as it asks.
  bool AtEndOfStream(bool is_send) const;

  // The end, in two steps: settled under the lock of the socket, and told to the shard without it.
  enum class Ending : uint8_t { kOver, kInOrder, kAborted };
  // Null: nobody waits for an event.
  Ending BeginClose(CloseMode mode, Operation* operation);
  void GoOnClosing(Ending ending);
  // Until when a Close waits that has to let a file go first: the core does not know of it yet.
  absl::Time LingersBehindFile() const;
  // A later Close, which makes an abort of one that waits. False: there is none.
  bool Escalate(Operation& operation);
  void Abort();          // where there is a connection
  void AnnounceTaken();  // the application has taken this accepted connection

  SocketStats Stats() const;
  bool connected() const { return phase_ == Phase::kConnected; }
  bool begun() const { return phase_ == Phase::kConnected || phase_ == Phase::kEnded; }
  // Whether one may be posted now, or why not.
  absl::Status CanTransfer(bool is_send) const;
  provider::ConnectionId connection() const { return connection_; }
  bool write_shut() const { return write_shut_; }
  absl::Duration CancelGrace() const;  // in force
  uint8_t fabric() const { return fabric_; }
  Address local() const;
  Address peer() const;
  BouncePool::Share& bounce_share() { return bounce_share_; }

  // From the shard, under its lock.
  void BecomeAccepted(provider::ConnectionId connection, const Address& local, const Address& peer,
                      uint8_t fabric, SocketId listener);
  void OnConnected(const Address& local, const Address& peer, uint8_t fabric);
  void OnFailed(const provider::Failure& cause);
  void OnShutDown(const provider::Failure& failure);
  void OnMoved(uint8_t fabric) { fabric_ = fabric; }
  void OnResumed(const provider::Failure& failure) { FinishSuspend(StatusOf(failure)); }
  void OnClosed(const provider::Failure& cause, uint64_t bytes_received);
  void OnShutdownLate(OpId op);
  void OnCloseLate();
  // The connection had ended before this transfer came to it.
  void FinishTooLate(Operation& operation);
  // A transfer has had its event, or was never accepted. The socket may end with it.
  void OnTransferGone();

 private:
  enum class Phase : uint8_t { kIdle, kConnecting, kConnected, kEnded };
  using Named = std::function<void(provider::ConnectionId)>;
  using Tell = std::function<absl::StatusOr<provider::ConnectionId>(Time, const Named&)>;
  absl::Status BeginConnect(Operation& operation, const Address& local, const Address& peer,
                            absl::Time deadline, const Tell& tell);
  absl::Status CanSuspend() const;
  void FinishSuspend(const absl::Status& status);
  absl::StatusOr<Operation*> NewTransfer(EventType type, const TransferFlags& flags,
                                         const OpArgs& args);
  absl::Status PostTogether(EventType type, absl::Span<const Slice> slices,
                            const TransferFlags& flags, const OpArgs& args, absl::Span<OpId> ids,
                            size_t& posted);
  template <typename Fill>
  absl::StatusOr<OpId> FillAndLaunch(Operation& operation, Fill fill);
  // False: it has ended, or waits behind a file.
  absl::StatusOr<bool> IsForShard(Operation& operation);
  absl::StatusOr<OpId> Launch(Operation& operation);
  bool KeepsInput() const;  // at the end: what the peer has sent before its own
  void FinishAtEndOfStream(Operation& operation);
  template <typename Make>
  absl::StatusOr<OpId> PostFile(EventType type, const OpArgs& args, const Make& make);
  absl::Status CheckSlice(const Slice& slice, bool is_send) const;
  absl::Status AddPiece(Operation& operation, const Slice& slice, bool is_send) const;
  // Of debug builds: refuses a receive into bytes that another one is filling.
  absl::Status ClaimMemory(const Operation& operation) const;
  // The event of Close, once the connection and every transfer has ended.
  void MaybeFinishClose();
  // Under the lock.
  absl::Status CloseStatus(const provider::Failure& cause) const;
  void KeepCause(const provider::Failure& cause);

  SocketState& socket_;
  ContextState& context_;
  const SocketId id_;
  SocketId listener_id_ = SocketId::kNone;  // where it came in

  std::atomic<Phase> phase_{Phase::kIdle};
  std::atomic<uint8_t> fabric_{0};  // its place among the shard's
  std::atomic<bool> write_shut_{false};
  std::atomic<bool> failed_{false};  // posts are refused with the cause, also before kEnded
  std::atomic<bool> closing_{false};
  // Sends and receives from before they are allowed until they are gone: what is being posted while
  // the connection ends must have its event before the socket's last one.
  std::atomic<uint32_t> transfers_{0};
  // The socket's options that transfers look at.
  std::atomic<uint64_t> zcopy_send_min_{0};
  std::atomic<uint64_t> zcopy_recv_min_{0};
  std::atomic<bool> learns_threshold_{false};
  std::atomic<DeadlinePolicy> deadline_policy_{};
  BouncePool::Share bounce_share_;
  StreamPolls polls_;
  BehindFiles behind_files_;
  ImmediateSends immediate_;
  std::atomic<provider::ConnectionId> connection_{provider::ConnectionId::kNone};

  mutable std::mutex mutex_;
  Address local_;
  Address peer_;
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
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_STREAM_STATE_H_
