#include "impl/sockets/stream/socket_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"

// What happens to a socket: news from the shard, under its lock.

namespace esdp::sockets {

SocketState::SocketState(std::shared_ptr<ContextState> context, Family family,
                         const SocketOptions& options)
    : context_(std::move(context)),
      family_(family),
      zcopy_send_min_(options.zcopy_send_min.value_or(context_->options().zcopy_send_min)),
      zcopy_recv_min_(options.zcopy_recv_min.value_or(context_->options().zcopy_recv_min)),
      own_threshold_(options.zcopy_send_min.has_value()),
      adaptive_threshold_(
          options.adaptive_threshold.value_or(context_->options().adaptive_threshold)),
      coalesce_max_(options.coalesce_max),
      deadline_policy_(options.deadline_policy),
      options_(options),
      local_(Address::Any(family, 0)),
      peer_(Address::Any(family, 0)) {
  const ContextOptions& defaults = context_->options();
  options_.send_mode = options.send_mode.value_or(defaults.send_mode);
  options_.receive_mode = options.receive_mode.value_or(defaults.receive_mode);
  options_.as_deployed = options.as_deployed.value_or(defaults.as_deployed);
  options_.cancel_grace = options.cancel_grace.value_or(defaults.cancel_grace);
  options_.keep_alive_idle = WholeSeconds(options.keep_alive_idle);
}

void SocketState::BecomeAccepted(provider::ConnectionId connection, const Address& local,
                                 const Address& peer, uint8_t fabric) {
  const std::lock_guard lock(mutex_);
  connection_ = connection;
  fabric_ = fabric;
  local_ = local;
  peer_ = peer;
  phase_ = Phase::kConnected;
}

void SocketState::OnIncoming(const std::shared_ptr<SocketState>& accepted) {
  bool unwanted = false;
  {
    const std::lock_guard lock(mutex_);
    unwanted = closing_;
    accepted->listener_id_ = id_;
    if (!unwanted) arrived_.emplace(accepted->id(), accepted);
  }
  if (unwanted) return accepted->Drop();
  Match();
}

void SocketState::OnIncomingEnded(SocketId accepted) {
  std::shared_ptr<SocketState> ended;  // dropped after the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = arrived_.find(accepted);
    if (found == arrived_.end()) return;
    ended = std::move(found->second);
    arrived_.erase(found);
    ++ended_before_accept_;
  }
  (void)context_->untaken().Take(accepted);  // it may have waited for a slot in the queue
  context_->CountEndedBeforeAccept();
}

// What cannot be announced for want of memory is ended, so that its peer hears of it.
void SocketState::Match() {
  for (;;) {
    std::shared_ptr<SocketState> lost;
    try {
      return MatchAll();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      if (arrived_.empty()) return;
      lost = std::move(arrived_.begin()->second);
      arrived_.erase(arrived_.begin());
    }
    (void)context_->untaken().Take(lost->id());
    lost->Drop();
  }
}

void SocketState::MatchAll() {
  for (;;) {
    Operation* last = nullptr;
    Event event;
    std::shared_ptr<QueueState> queue;
    {
      const std::lock_guard lock(mutex_);
      if (arrived_.empty() || accepts_.empty()) return;
      Operation* operation = accepts_.front();
      queue = operation->queue;
      context_->untaken().Add(arrived_.begin()->second, id_);
      if (operation->accepts_left == 1) {
        last = operation;
        accepts_.pop_front();
      } else if (!queue->Reserve(false)) {
        queue->SetStarved();
        if (!queue->Reserve(false)) return;  // Dequeue matches again
      }
      if (operation->accepts_left > 1 && --operation->accepts_left == 1) queue->AddOpenEnded(-1);
      const std::shared_ptr<SocketState> accepted = std::move(arrived_.begin()->second);
      arrived_.erase(arrived_.begin());
      event.type = EventType::kAccept;
      event.flags = kMore;
      event.cookie = operation->cookie;
      event.op = operation->id;
      event.socket = id_;
      event.accepted = accepted->id();
      event.accepted_peer = accepted->peer();
      // Under the lock, so that no other thread delivers the operation's last event before it.
      if (last == nullptr) queue->Deliver(event);
    }
    if (last != nullptr) {
      event.flags = 0;
      context_->Finish(*last, event);
    }
  }
}

void SocketState::OnConnected(const Address& local, const Address& peer, uint8_t fabric) {
  Operation* operation = nullptr;
  fabric_ = fabric;
  {
    const std::lock_guard lock(mutex_);
    local_ = local;
    peer_ = peer;
    phase_ = Phase::kConnected;
    if (!connect_cancelled_) operation = std::exchange(connect_, nullptr);
  }
  if (operation != nullptr) context_->Finish(*operation, absl::OkStatus());
}

void SocketState::KeepCause(const provider::Failure& cause) {
  cause_.ending = cause.ending;
  try {
    cause_.text = cause.text;
  } catch (const std::bad_alloc&) {  // the kind has a text of its own
  }
}

void SocketState::OnFailed(const provider::Failure& cause) {
  const std::lock_guard lock(mutex_);
  KeepCause(cause);
  failed_ = true;
}

void SocketState::OnShutDown(const provider::Failure& failure) {
  std::vector<Operation*> shutdowns;
  {
    const std::lock_guard lock(mutex_);
    shutdowns.swap(shutdowns_);
  }
  for (Operation* operation : shutdowns) context_->Finish(*operation, StatusOf(failure));
}

absl::Status SocketState::CloseStatus(const provider::Failure& cause) const {
  if (close_mode_ == CloseMode::kAbort || cause.ending == provider::EndReason::kOk) {
    return absl::OkStatus();
  }
  if (close_late_) {
    return OrNoMemory([&] {
      return MakeError(ErrorKind::kDeadlineExceeded,
                       "the deadline of Close has passed: " + cause.text);
    });
  }
  return StatusOf(cause);
}

void SocketState::OnClosed(const provider::Failure& cause, uint64_t bytes_received) {
  Operation* connecting = nullptr;
  std::vector<Operation*> shutdowns;
  absl::Status connect_status = StatusOf(cause);
  {
    const std::lock_guard lock(mutex_);
    KeepCause(cause);
    bytes_received_ = bytes_received;
    phase_ = Phase::kEnded;
    connecting = std::exchange(connect_, nullptr);
    shutdowns.swap(shutdowns_);
    if (connect_cancelled_) connect_status = MakeError(ErrorKind::kCancelled, "Cancel was called");
    close_status_ = CloseStatus(cause);
  }
  if (connecting != nullptr) {
    if (connect_status.ok()) {
      connect_status = MakeError(ErrorKind::kLocalAbort, "closed while connecting");
    }
    context_->Finish(*connecting, connect_status);
  }
  for (Operation* operation : shutdowns) context_->Finish(*operation, StatusOf(cause));
  // One that came too late to be heard of.
  const bool in_order = cause.ending == provider::EndReason::kOk;
  FinishSuspend(in_order ? MakeError(ErrorKind::kShutDown, "the connection has ended")
                         : StatusOf(cause));
  MaybeFinishClose();
  if (listener_id_ == SocketId::kNone) return;
  if (const auto listener = context_->Find(listener_id_)) listener->OnIncomingEnded(id_);
}

void SocketState::OnTransferGone() {
  // The other order of these two is in OnClosed: one of both sees the other.
  if (transfers_.fetch_sub(1) == 1 && phase_ == Phase::kEnded) MaybeFinishClose();
}

void SocketState::MaybeFinishClose() {
  if (transfers_ > 0) return;
  Operation* closing = nullptr;
  Operation* aborting = nullptr;
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    closing = std::exchange(close_, nullptr);
    aborting = std::exchange(closing_abort_, nullptr);
    status = close_status_;
  }
  if (closing != nullptr) context_->Finish(*closing, status);
  if (aborting != nullptr) context_->Finish(*aborting, absl::OkStatus());
  context_->Remove(id_);
}

namespace {

absl::Status Late(const char* what) { return MakeError(ErrorKind::kDeadlineExceeded, what); }

}  // namespace

// What was posted before goes on, unless the policy ends it too.
void SocketState::OnShutdownLate(OpId op) {
  Operation* late = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(shutdowns_, [&](Operation* shutdown) { return shutdown->id == op; });
    if (found == shutdowns_.end()) return;
    late = *found;
    shutdowns_.erase(found);
  }
  context_->Finish(*late, Late("what was posted before Shutdown had not left at its deadline"));
  if (deadline_policy_ == DeadlinePolicy::kAbortConnection) {
    SubmitToConnection({.kind = provider::Request::Kind::kAbort});
  }
}

void SocketState::OnDeadline(OpId op, EventType type) {
  if (type == EventType::kAccept) {
    FinishAccept(op, Late("no connection came before the deadline"));
  } else if (type == EventType::kShutdown) {
    OnShutdownLate(op);
  } else if (type == EventType::kClose) {
    {
      const std::lock_guard lock(mutex_);
      if (close_ == nullptr) return;
      close_late_ = true;
    }
    SubmitToConnection({.kind = provider::Request::Kind::kAbort});
  }
}

absl::Status SocketState::EndedStatus() const {
  const std::lock_guard lock(mutex_);
  if (cause_.ending == provider::EndReason::kOk) {
    return MakeError(ErrorKind::kShutDown, "both directions of the connection have ended");
  }
  return StatusOf(cause_);
}

}  // namespace esdp::sockets
