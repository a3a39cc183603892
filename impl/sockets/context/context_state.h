#ifndef ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_STATE_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_STATE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "impl/base/clock.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context/context_call.h"
#include "impl/sockets/context/log_limit.h"
#include "impl/sockets/context/unlocked_shows.h"
#include "impl/sockets/context/untaken_sockets.h"
#include "impl/sockets/context/waits_beside.h"
#include "impl/sockets/file/file_service.h"
#include "impl/sockets/memory/bounce_pool.h"
#include "impl/sockets/memory/left_regions.h"
#include "impl/sockets/memory/region_state.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

class ListenerState;
class QueueState;
class SocketState;
class StreamState;

// What stands behind a Context: its shard, its operations, and its sockets by name.
//
//   Owns:     the shard; sockets until they have closed.
//   Threads:  any. Observer calls come under the shard lock: they take locks of this room,
//             but no lock of this room is held while the shard is called.
//   Blocks:   Stop, at most a second; Pause.
//   Units:    –
//   Errors:   Usable tells whether calls are still possible.
class ContextState : public provider::Observer, public std::enable_shared_from_this<ContextState> {
 public:
  // `transports` tells what the shard's fabrics are, in their order.
  using MakeShard = std::function<absl::StatusOr<std::unique_ptr<provider::Shard>>(
      provider::Observer&, const provider::ShardOptions&)>;
  static absl::StatusOr<std::shared_ptr<ContextState>> Open(const ContextOptions& options,
                                                            std::vector<Transport> transports,
                                                            const MakeShard& make_shard,
                                                            std::shared_ptr<LogLimit> log);
  ~ContextState() override;

  const ContextOptions& options() const { return options_; }
  // What whoever opened the Context wants to find again; kept as long as it.
  void set_companion(std::shared_ptr<void> companion) { companion_ = std::move(companion); }
  const std::shared_ptr<void>& companion() const { return companion_; }
  const std::vector<Transport>& transports() const { return transports_; }
  Transport transport(uint8_t fabric = 0) const { return transports_[fabric]; }
  provider::Shard& shard() { return *shard_; }
  bool manual() const { return manual_; }
  // OK unless it is closed or this is the child of a fork; for the length of a ContextCall.
  absl::Status Usable() const;
  bool stopped() const { return stopped_.load(); }

  absl::Time Now() const;
  Time ToShardTime(absl::Time deadline) const;
  // Lets some time pass, or moves the protocol; false once `deadline` has come.
  bool Pause(Time deadline);
  absl::StatusOr<bool> WaitBeside(const WaitsBeside::Args& args) {
    return waits_beside_.Wait(*shard_, args, stopped_);
  }
  void WakeWaitBeside() { waits_beside_.Wake(*shard_); }

  OperationTable& operations() { return operations_; }
  BouncePool& bounce_pool() { return bounce_pool_; }
  LeftRegions& left_regions() { return left_regions_; }
  FileService& files() { return files_; }

  // Reserves a slot, then makes an operation of this type. `queue` belongs to this Context.
  absl::StatusOr<Operation*> NewOperation(EventType type, SocketId socket, const OpArgs& args);
  void Discard(Operation& operation);  // it was never accepted
  // Ends it with its terminal event, to which it adds what the operation knows itself.
  void Finish(Operation& operation, Event& event);
  void Finish(Operation& operation, const absl::Status& status, Event event = {});
  void SetAlarm(OpId op, absl::Time deadline);
  void SetAlarmAt(OpId op, Time deadline);

  // Sockets. Streams and listeners are found by the shard's names for them, too.
  SocketId NewSocketId() { return SocketId{last_socket_.fetch_add(1) + 1}; }
  void Add(const std::shared_ptr<SocketState>& socket);
  void Remove(SocketId socket);
  std::shared_ptr<SocketState> Find(SocketId socket) const;
  void Bind(provider::ConnectionId connection, const std::shared_ptr<StreamState>& stream);
  void Bind(provider::ListenerId name, const std::shared_ptr<ListenerState>& listener);
  void Unbind(provider::ListenerId listener);
  UntakenSockets& untaken() { return untaken_; }  // accepted ones that wait to be taken
  absl::StatusOr<Socket> TakeAccepted(SocketId accepted);
  void CountEndedBeforeAccept() { ended_before_accept_.fetch_add(1, std::memory_order_relaxed); }
  // The application has these events from now on, or will never have them.
  void OnAcceptsSeen(std::span<const Event> events);
  void OnAcceptsLost(std::span<const SocketId> accepted);
  // Multi-shot Accepts that waited for a slot in their queue.
  void MatchAllListeners();

  // It was opened before the fork of which this process comes.
  bool is_of_parent() const;
  void CountRegion(int count, int64_t bytes);
  void Add(QueueState* queue);
  void Remove(QueueState* queue);
  ContextStats Stats() const;

  bool ShowUnlocked(std::shared_ptr<StreamState> stream);  // in an Observer call; false: no memory
  std::vector<std::shared_ptr<SocketState>> Sockets() const;  // all of them, to close them
  // Aborts what is open, waits for other threads' calls, ends the shard: it is not usable any more.
  void Stop();

  // provider::Observer
  void OnIncoming(provider::ListenerId listener, provider::ConnectionId connection,
                  const provider::Address& local, const provider::Address& peer,
                  uint8_t fabric) override;
  void OnListenerFailed(provider::ListenerId listener, const provider::Failure& cause) override;
  void OnConnected(provider::ConnectionId connection, const provider::Address& local,
                   const provider::Address& peer, uint8_t fabric) override;
  void OnFailed(provider::ConnectionId connection, const provider::Failure& cause) override;
  void OnTransferFinished(provider::ConnectionId connection, provider::Transfer& transfer,
                          const provider::TransferResult& result) override;
  void OnImmediateSent(provider::ImmediateSend& send) override;
  void OnShutDown(provider::ConnectionId connection, const provider::Failure& failure) override;
  void OnResumed(provider::ConnectionId connection, const provider::Failure& failure) override;
  void OnMoved(provider::ConnectionId connection, uint8_t fabric) override;
  void OnReadiness(provider::ConnectionId id, const provider::Readiness& readiness) override;
  void OnRejected(provider::Rejection reason) override;
  void OnClosed(provider::ConnectionId connection, const provider::Failure& cause,
                uint64_t bytes_received) override;
  void OnAlarm(uint64_t key) override;
  void OnUnlocked() override { unlocked_shows_.ShowAll(); }

 private:
  explicit ContextState(const ContextOptions& options);
  void StartLog();
  // Of the failure of an operation of this socket.
  void SetCause(SocketId socket, const absl::Status& status, Event& event) const;
  std::shared_ptr<StreamState> FindConnection(provider::ConnectionId connection) const;
  void GiveUpUntaken();
  void FinishLeftovers();
  void AwaitCalls();
  friend class ContextCall;

  const ContextOptions options_;
  std::shared_ptr<LogLimit> log_;
  std::vector<Transport> transports_;  // of the shard's fabrics, in their order
  std::shared_ptr<void> companion_;
  bool manual_ = false;
  bool virtual_time_ = false;
  const uint32_t fork_epoch_;
  SystemClock clock_;
  mutable std::atomic<uint32_t> calls_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> last_socket_;

  OperationTable operations_;
  UntakenSockets untaken_;
  std::atomic<uint64_t> accepts_given_up_{0};
  std::atomic<uint64_t> ended_before_accept_{0};
  std::array<std::atomic<uint64_t>, provider::kRejections> rejected_{};  // incoming, by the reason
  UnlockedShows unlocked_shows_;
  BouncePool bounce_pool_;
  LeftRegions left_regions_;
  FileService files_;
  WaitsBeside waits_beside_;

  mutable std::mutex mutex_;
  std::unordered_map<SocketId, std::shared_ptr<SocketState>> sockets_;
  std::unordered_map<provider::ConnectionId, std::shared_ptr<StreamState>> connections_;
  std::unordered_map<provider::ListenerId, std::shared_ptr<ListenerState>> listeners_;
  std::unordered_set<QueueState*> queues_;

  std::mutex pause_mutex_;
  std::condition_variable ended_;  // an operation, while somebody pauses
  std::atomic<int> pausing_{0};

  std::atomic<int> regions_{0};
  std::atomic<int64_t> region_bytes_{0};

  std::unique_ptr<provider::Shard> shard_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_STATE_H_
