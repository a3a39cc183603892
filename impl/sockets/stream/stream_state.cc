#include "impl/sockets/stream/stream_state.h"

#include <new>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

// What happens to a stream: news from the shard, under its lock.

namespace esdp::sockets {

StreamState::StreamState(SocketState& socket, ContextState& context, SocketId id, Family family)
    : socket_(socket),
      context_(context),
      id_(id),
      polls_(*this, context, id),
      behind_files_(*this, context),
      immediate_(*this, context, id),
      local_(Address::Any(family, 0)),
      peer_(Address::Any(family, 0)) {}

std::shared_ptr<StreamState> StreamState::Self() { return {socket_.shared_from_this(), this}; }

void StreamState::SetOptions(const SocketOptions& options) {
  const ContextOptions& defaults = context_.options();
  zcopy_send_min_ = options.zcopy_send_min.value_or(defaults.zcopy_send_min);
  zcopy_recv_min_ = options.zcopy_recv_min.value_or(defaults.zcopy_recv_min);
  // One that was told for this socket stays as it is.
  learns_threshold_ = options.adaptive_threshold.value_or(defaults.adaptive_threshold) &&
                      !options.zcopy_send_min.has_value();
  immediate_.SetLimits(zcopy_send_min_, options.coalesce_max);
  deadline_policy_ = options.deadline_policy;
}

absl::Duration StreamState::CancelGrace() const {
  return socket_.OptionsInForce().cancel_grace.value_or(context_.options().cancel_grace);
}

Address StreamState::local() const {
  const std::lock_guard lock(mutex_);
  return local_;
}

Address StreamState::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

void StreamState::Submit(provider::Request&& request) {
  request.connection = connection_;
  context_.shard().Submit(request);
}

uint64_t StreamState::UnreadBytes() const { return context_.shard().UnreadBytes(connection_); }

void StreamState::BecomeAccepted(provider::ConnectionId connection, const Address& local,
                                 const Address& peer, uint8_t fabric, SocketId listener) {
  const std::lock_guard lock(mutex_);
  listener_id_ = listener;
  connection_ = connection;
  fabric_ = fabric;
  local_ = local;
  peer_ = peer;
  phase_ = Phase::kConnected;
}

void StreamState::OnConnected(const Address& local, const Address& peer, uint8_t fabric) {
  Operation* operation = nullptr;
  fabric_ = fabric;
  {
    const std::lock_guard lock(mutex_);
    local_ = local;
    peer_ = peer;
    phase_ = Phase::kConnected;
    if (!connect_cancelled_) operation = std::exchange(connect_, nullptr);
  }
  if (operation != nullptr) context_.Finish(*operation, absl::OkStatus());
}

void StreamState::KeepCause(const provider::Failure& cause) {
  cause_.ending = cause.ending;
  cause_.input_kept = cause.input_kept;
  try {
    cause_.text = cause.text;
  } catch (const std::bad_alloc&) {  // the kind has a text of its own
  }
}

void StreamState::OnFailed(const provider::Failure& cause) {
  {
    const std::lock_guard lock(mutex_);
    KeepCause(cause);
    failed_ = true;
  }
  polls_.OnEnd(cause.ending == provider::EndReason::kOk);
}

void StreamState::OnShutDown(const provider::Failure& failure) {
  std::vector<Operation*> shutdowns;
  {
    const std::lock_guard lock(mutex_);
    shutdowns.swap(shutdowns_);
  }
  for (Operation* operation : shutdowns) context_.Finish(*operation, StatusOf(failure));
}

absl::Status StreamState::CloseStatus(const provider::Failure& cause) const {
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

void StreamState::OnClosed(const provider::Failure& cause, uint64_t bytes_received) {
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
    context_.Finish(*connecting, connect_status);
  }
  for (Operation* operation : shutdowns) context_.Finish(*operation, StatusOf(cause));
  // One that came too late to be heard of.
  const bool in_order = cause.ending == provider::EndReason::kOk;
  FinishSuspend(in_order ? MakeError(ErrorKind::kShutDown, "the connection has ended")
                         : StatusOf(cause));
  polls_.OnEnd(in_order);
  MaybeFinishClose();
  if (listener_id_ == SocketId::kNone) return;
  const std::shared_ptr<SocketState> socket = context_.Find(listener_id_);
  if (socket == nullptr) return;
  if (ListenerState* const listener = socket->listener()) listener->OnIncomingEnded(id_, cause);
}

void StreamState::OnTransferGone() {
  polls_.OnTransferEnded();
  // The other order of these two is in OnClosed: one of both sees the other.
  if (transfers_.fetch_sub(1) == 1 && phase_ == Phase::kEnded) MaybeFinishClose();
}

void StreamState::MaybeFinishClose() {
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
  if (closing != nullptr) context_.Finish(*closing, status);
  if (aborting != nullptr) context_.Finish(*aborting, absl::OkStatus());
  context_.Remove(id_);
}

// What was posted before goes on, unless the policy ends it too.
void StreamState::OnShutdownLate(OpId op) {
  Operation* late = nullptr;
  {
    const std::lock_guard lock(mutex_);
    late = TakeNamed(shutdowns_, op);
  }
  if (late == nullptr) return;
  context_.Finish(*late, MakeError(ErrorKind::kDeadlineExceeded,
                                   "what was posted before Shutdown had not left at its deadline"));
  if (deadline_policy_ == DeadlinePolicy::kAbortConnection) {
    Submit({.kind = provider::Request::Kind::kAbort});
  }
}

void StreamState::OnCloseLate() {
  {
    const std::lock_guard lock(mutex_);
    if (close_ == nullptr) return;
    close_late_ = true;
  }
  Submit({.kind = provider::Request::Kind::kAbort});
}

absl::Status StreamState::EndedStatus() const {
  const std::lock_guard lock(mutex_);
  if (cause_.ending == provider::EndReason::kOk) {
    return MakeError(ErrorKind::kShutDown, "both directions of the connection have ended");
  }
  return StatusOf(cause_);
}

}  // namespace esdp::sockets
