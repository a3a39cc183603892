#include <array>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "impl/base/bytes.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/file/file_operation.h"
#include "impl/sockets/in_observer_call.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/queue/event_text.h"
#include "impl/sockets/socket/socket_access.h"
#include "impl/sockets/socket/socket_state.h"

// Sockets by name, and what the shard says about them.

namespace esdp::sockets {
namespace {

// The keys of alarms that are no operation's: their names leave the highest bit alone.
constexpr uint64_t kUntakenAlarm = uint64_t{1} << 63;
constexpr uint64_t kLogAlarm = kUntakenAlarm + 1;

template <typename Map>
typename Map::mapped_type Look(const Map& map, typename Map::key_type key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

void ContextState::Add(const std::shared_ptr<SocketState>& socket) {
  const std::lock_guard lock(mutex_);
  sockets_.emplace(socket->id(), socket);
}

void ContextState::Remove(SocketId socket) {
  std::shared_ptr<SocketState> removed;  // dropped after the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = sockets_.find(socket); found != sockets_.end()) {
    removed = std::move(found->second);
    sockets_.erase(found);
  }
}

std::shared_ptr<SocketState> ContextState::Find(SocketId socket) const {
  const std::lock_guard lock(mutex_);
  return Look(sockets_, socket);
}

std::shared_ptr<StreamState> ContextState::FindConnection(provider::ConnectionId connection) const {
  const std::lock_guard lock(mutex_);
  return Look(connections_, connection);
}

void ContextState::Bind(provider::ConnectionId connection,
                        const std::shared_ptr<StreamState>& stream) {
  const std::lock_guard lock(mutex_);
  connections_[connection] = stream;
}

void ContextState::Bind(provider::ListenerId name, const std::shared_ptr<ListenerState>& listener) {
  const std::lock_guard lock(mutex_);
  listeners_[name] = listener;
}

void ContextState::Unbind(provider::ListenerId listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

void ContextState::OnAcceptsSeen(std::span<const Event> events) try {
  const ContextCall call(this);
  if (!call.ok()) return;
  for (const Event& event : events) {
    if (event.accepted == SocketId::kNone) continue;
    if (const auto overdue_at = untaken_.Seen(event.accepted, shard_->Now())) {
      shard_->Submit(
          {.kind = provider::Request::Kind::kAlarm, .tag = kUntakenAlarm, .at = *overdue_at});
    }
  }
} catch (const std::bad_alloc&) {  // those not noted stay until their listener goes
}

absl::StatusOr<Socket> ContextState::TakeAccepted(SocketId accepted) {
  std::shared_ptr<SocketState> socket = untaken_.Take(accepted);
  if (socket == nullptr) {
    return MakeError(ErrorKind::kBadHandle,
                     "no accepted connection of this name waits: it was taken or aborted, or it is "
                     "another Context's");
  }
  socket->stream().AnnounceTaken();
  return SocketAccess::Make(std::move(socket));
}

void ContextState::OnAcceptsLost(std::span<const SocketId> accepted) {
  for (const SocketId id : accepted) {
    if (const auto socket = untaken_.Take(id)) socket->Drop();
  }
}

void ContextState::StartLog() {
  log_->Start(
      [this] { return shard_->Now(); },
      [this](Time at) {
        const ContextCall call(this);
        if (!call.ok()) return;
        shard_->Submit({.kind = provider::Request::Kind::kAlarm, .tag = kLogAlarm, .at = at});
      });
}

void ContextState::GiveUpUntaken() {
  std::optional<Time> next;
  const auto overdue = untaken_.TakeOverdue(shard_->Now(), &next);
  if (next.has_value()) {
    shard_->Submit({.kind = provider::Request::Kind::kAlarm, .tag = kUntakenAlarm, .at = *next});
  }
  if (overdue.empty()) return;
  for (const auto& socket : overdue) socket->Drop();
  accepts_given_up_.fetch_add(overdue.size(), std::memory_order_relaxed);
  log_->Log(std::to_string(overdue.size()) +
            " accepted connections were aborted: their events were dequeued, and nobody has "
            "called TakeAccepted for " +
            absl::FormatDuration(options_.take_accepted_within));
}

void ContextState::MatchAllListeners() {
  std::vector<std::shared_ptr<ListenerState>> listeners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, listener] : listeners_) listeners.push_back(listener);
  }
  for (const auto& listener : listeners) listener->Match();
}

void ContextState::Add(QueueState* queue) {
  const std::lock_guard lock(mutex_);
  queues_.insert(queue);
}

void ContextState::Remove(QueueState* queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

std::vector<std::shared_ptr<SocketState>> ContextState::Sockets() const {
  std::vector<std::shared_ptr<SocketState>> all;
  const std::lock_guard lock(mutex_);
  all.reserve(sockets_.size());
  for (const auto& [id, socket] : sockets_) all.push_back(socket);
  return all;
}

// --- provider::Observer --------------------------------------------------------------------------

void ContextState::OnIncoming(provider::ListenerId listener, provider::ConnectionId connection,
                              const provider::Address& local, const provider::Address& peer,
                              uint8_t fabric) {
  const InObserverCall in_call;
  std::shared_ptr<ListenerState> listening;
  {
    const std::lock_guard lock(mutex_);
    listening = Look(listeners_, listener);
  }
  if (listening == nullptr) {
    provider::Request abort;
    abort.kind = provider::Request::Kind::kAbort;
    abort.connection = connection;
    return shard_->Submit(abort);
  }
  listening->OnIncoming(connection, FromProvider(local), FromProvider(peer), fabric);
}

void ContextState::OnListenerFailed(provider::ListenerId listener, const provider::Failure& cause) {
  const InObserverCall in_call;
  std::shared_ptr<ListenerState> listening;
  {
    const std::lock_guard lock(mutex_);
    listening = Look(listeners_, listener);
  }
  if (listening != nullptr) listening->OnFailed(cause);
}

void ContextState::OnConnected(provider::ConnectionId connection, const provider::Address& local,
                               const provider::Address& peer, uint8_t fabric) {
  const InObserverCall in_call;
  if (const auto stream = FindConnection(connection)) {
    stream->OnConnected(FromProvider(local), FromProvider(peer), fabric);
  }
}

void ContextState::OnFailed(provider::ConnectionId connection, const provider::Failure& cause) {
  const InObserverCall in_call;
  if (const auto stream = FindConnection(connection)) stream->OnFailed(cause);
}

void ContextState::OnTransferFinished(provider::ConnectionId, provider::Transfer& transfer,
                                      const provider::TransferResult& result) {
  const InObserverCall in_call;
  Operation& operation = OperationTransfer::OperationOf(transfer);
  if (operation.file != nullptr) [[unlikely]]
    return operation.file->OnTransferFinished(transfer, result);
  if (result.ending == provider::EndReason::kTooLate)
    return operation.owner->FinishTooLate(operation);
  Event event;
  event.bytes = result.bytes;
  event.bytes_zero_copy = result.bytes_zero_copy;
  event.stream_offset = result.stream_offset;
  if (result.bytes_zero_copy > 0) event.flags |= kZeroCopy;
  if (result.bytes > result.bytes_zero_copy) event.flags |= kCopied;
  if (result.end_of_stream) event.flags |= kEof;
  if (result.urgent) event.flags |= kUrgent;
  if (result.written) event.flags |= kWritten;
  if (transfer.wait_all) event.flags |= kWaitAll;
  if (result.ending != provider::EndReason::kOk) [[unlikely]] {
    event.kind = KindOfEnding(result.ending);
    event.code = CodeOf(event.kind);
    event.sys_errno = ErrnoOf(event.kind);
    if (result.failure != nullptr) SetText(event, result.failure->text, operation.owner->peer());
    if (event.kind == ErrorKind::kCancelled || event.kind == ErrorKind::kDeadlineExceeded) {
      event.flags |= kCancelled;
    }
    if (event.kind == ErrorKind::kPeerReset) event.flags |= kPeerReset;
  }
  Finish(operation, event);
}

void ContextState::OnImmediateSent(provider::ImmediateSend& sent) {
  auto& send = static_cast<ImmediateSend&>(sent);
  uint64_t offset = send.stream_offset;
  const auto fill = [&](Event& event, size_t part) {
    event.type = send.type;
    event.flags = kTerminal | kCopied;
    event.cookie = send.cookie;
    event.op = operations_.NamePrompt();
    event.socket = send.socket;
    event.bytes = send.parts[part].size();
    event.stream_offset = offset;
    offset += event.bytes;
    if (!send.ids.empty()) send.ids[part] = event.op;
  };
  if (send.parts.size() == 1) {
    Event event;
    fill(event, 0);
    return send.queue->Deliver(event);
  }
  std::array<Event, 16> events;
  for (size_t at = 0; at < send.parts.size();) {
    size_t filled = 0;
    while (filled < events.size() && at < send.parts.size()) fill(events[filled++], at++);
    send.queue->DeliverAll(std::span(events).first(filled));
  }
}

void ContextState::OnShutDown(provider::ConnectionId connection, const provider::Failure& failure) {
  const InObserverCall in_call;
  if (const auto stream = FindConnection(connection)) stream->OnShutDown(failure);
}

void ContextState::OnMoved(provider::ConnectionId connection, uint8_t fabric) {
  const InObserverCall in_call;
  if (const auto stream = FindConnection(connection)) stream->OnMoved(fabric);
}

void ContextState::OnResumed(provider::ConnectionId connection, const provider::Failure& failure) {
  const InObserverCall in_call;
  if (const auto stream = FindConnection(connection)) stream->OnResumed(failure);
}

void ContextState::OnRejected(provider::Rejection reason) {
  rejected_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
}

bool ContextState::ShowUnlocked(std::shared_ptr<StreamState> stream) {
  const bool added = unlocked_shows_.Add(std::move(stream));
  if (added) WishUnlocked();
  return added;
}

void ContextState::OnReadiness(provider::ConnectionId id, const provider::Readiness& readiness) {
  const InObserverCall in_call;
  if (const auto stream = FindConnection(id)) stream->polls().OnReadiness(readiness);
}

void ContextState::OnClosed(provider::ConnectionId connection, const provider::Failure& cause,
                            uint64_t bytes_received) {
  const InObserverCall in_call;
  std::shared_ptr<StreamState> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    stream = std::move(found->second);
    connections_.erase(found);
  }
  stream->OnClosed(cause, bytes_received);
}

void ContextState::OnAlarm(uint64_t key) {
  const InObserverCall in_call;
  if (key == kUntakenAlarm) return GiveUpUntaken();
  if (key == kLogAlarm) return log_->TellLeftOut();
  SocketId socket = SocketId::kNone;
  EventType type = EventType::kNone;
  operations_.With(OpId{key}, [&](Operation& operation) {
    operation.has_alarm = false;
    socket = operation.socket;
    type = operation.type;
  });
  if (const auto found = Find(socket)) found->OnDeadline(OpId{key}, type);
}

}  // namespace esdp::sockets
