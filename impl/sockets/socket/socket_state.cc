#include "impl/sockets/socket/socket_state.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"

namespace esdp::sockets {

SocketState::SocketState(std::shared_ptr<ContextState> context, SocketId id, Family family,
                         const SocketOptions& options)
    : context_(std::move(context)),
      id_(id),
      family_(family),
      options_(options),
      bound_to_(Address::Any(family, 0)),
      stream_(*this, *context_, id, family) {
  const ContextOptions& defaults = context_->options();
  options_.send_mode = options.send_mode.value_or(defaults.send_mode);
  options_.receive_mode = options.receive_mode.value_or(defaults.receive_mode);
  options_.as_deployed = options.as_deployed.value_or(defaults.as_deployed);
  options_.cancel_grace = options.cancel_grace.value_or(defaults.cancel_grace);
  options_.keep_alive_idle = WholeSeconds(options.keep_alive_idle);
  options_.zcopy_recv_min = options.zcopy_recv_min.value_or(defaults.zcopy_recv_min);
  options_.adaptive_threshold = options.adaptive_threshold.value_or(defaults.adaptive_threshold);
  stream_.SetOptions(options_);
}

ListenerState* SocketState::listener() const {
  return role_ == Role::kListener ? listener_.get() : nullptr;
}

absl::Status SocketState::WhyNotConnected() const {
  if (closing_) return ClosedHandle();
  if (role_ == Role::kListener) {
    return MakeError(ErrorKind::kWrongState, "a listener carries no data: take a connection");
  }
  return MakeError(ErrorKind::kWrongState, "not connected yet: wait for the event of Connect");
}

absl::Status SocketState::Become(Role role) {
  if (closing_) return ClosedHandle();
  if (role_ != Role::kNone) {
    return MakeError(ErrorKind::kWrongState, "this socket is connected, connecting or listening");
  }
  role_ = role;
  return absl::OkStatus();
}

absl::Status SocketState::Bind(const Address& address) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  const std::lock_guard lock(mutex_);
  if (closing_) return ClosedHandle();
  if (role_ != Role::kNone) {
    return MakeError(ErrorKind::kWrongState, "Bind must come before Connect and Listen");
  }
  if (address.family() != family_) {
    return MakeError(ErrorKind::kInvalidArgument,
                     address.ToString() + " is not of the socket's address family");
  }
  bound_to_ = address;
  return absl::OkStatus();
}

absl::Status SocketState::Listen(int backlog) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (backlog < 1) {
    return MakeError(ErrorKind::kInvalidArgument, "the backlog of a listener is at least 1");
  }
  return BecomeListener([&](ListenerState& listening, const Address& address) {
    return listening.Listen(address, backlog, ToConnectionOptions());
  });
}

absl::Status SocketState::ListenOver(int descriptor) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  return BecomeListener([&](ListenerState& listening, const Address&) {
    return listening.ListenOver(descriptor, ToConnectionOptions());
  });
}

absl::Status SocketState::BecomeListener(const BeginListening& begin) {
  Address address;
  {
    const std::lock_guard lock(mutex_);
    // One that could not listen stays: another thread may be about to use it.
    if (listener_ == nullptr) listener_ = std::make_unique<ListenerState>(*this, *context_);
    if (absl::Status can = Become(Role::kListener); !can.ok()) return can;
    address = bound_to_;
  }
  absl::Status status = begin(*listener_, address);
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    if (!closing_) role_ = Role::kNone;
  }
  return status;
}

absl::StatusOr<OpId> SocketState::Connect(const Address& address, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (address.family() != family_ || address.port() == 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     address.ToString() +
                         " cannot be connected to: a port and an address of the "
                         "socket's family are needed");
  }
  return BecomeStream(args, [&](Operation& operation, const Address& local) {
    return stream_.Connect(operation, local, address, ToConnectionOptions(), args.deadline);
  });
}

absl::StatusOr<OpId> SocketState::ConnectOver(int descriptor, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  return BecomeStream(args, [&](Operation& operation, const Address&) {
    return stream_.ConnectOver(operation, descriptor, ToConnectionOptions(), args.deadline);
  });
}

absl::StatusOr<OpId> SocketState::BecomeStream(const OpArgs& args, const BeginConnecting& begin) {
  absl::StatusOr<Operation*> operation = context_->NewOperation(EventType::kConnect, id_, args);
  if (!operation.ok()) return operation.status();
  Address local;
  {
    std::unique_lock lock(mutex_);
    if (absl::Status can = Become(Role::kStream); !can.ok()) {
      lock.unlock();
      context_->Discard(**operation);
      return can;
    }
    local = bound_to_;
  }
  const OpId op = (*operation)->id;  // it may have ended before Connect returns
  absl::Status status = begin(**operation, local);
  if (status.ok()) return op;
  const std::lock_guard lock(mutex_);
  if (!closing_) role_ = Role::kNone;
  return status;
}

void SocketState::BecomeAccepted(provider::ConnectionId connection, const Address& local,
                                 const Address& peer, uint8_t fabric, SocketId listener) {
  const std::lock_guard lock(mutex_);
  role_ = Role::kStream;
  stream_.BecomeAccepted(connection, local, peer, fabric, listener);
}

absl::StatusOr<OpId> SocketState::Accept(int count, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (count < 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the count of Accept is 0 (until cancelled) or a number of connections");
  }
  if (closing_) return ClosedHandle();
  ListenerState* const listening = listener();
  if (listening == nullptr) {
    return MakeError(ErrorKind::kWrongState, "this socket does not listen: call Listen first");
  }
  return listening->Accept(count, args);
}

absl::StatusOr<OpId> SocketState::Poll(uint32_t mask, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (mask == 0 || (mask & ~kPollAll) != 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the mask of Poll is " + std::to_string(mask) + ": use bits of PollMask");
  }
  if (closing_) return ClosedHandle();
  ListenerState* const listening = listener();
  if (listening != nullptr) return listening->Poll(mask, args);
  return stream_.begun() ? stream_.polls().Poll(mask, args) : WhyNotConnected();
}

void SocketState::FinishPoll(OpId op, const absl::Status& status) {
  ListenerState* const listening = listener();
  (listening != nullptr ? listening->polls() : stream_.polls().waiting()).Finish(op, status);
}

SocketState::Role SocketState::BeginClosing() {
  closing_ = true;
  const Role role = role_;
  if (role == Role::kNone) role_ = Role::kClosed;
  return role;
}

absl::StatusOr<OpId> SocketState::Close(CloseMode mode, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::StatusOr<Operation*> operation = context_->NewOperation(EventType::kClose, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  const absl::Time deadline = std::min(args.deadline, stream_.LingersBehindFile());
  (*operation)->has_alarm = deadline != absl::InfiniteFuture();
  Role role = Role::kNone;
  StreamState::Ending ending = StreamState::Ending::kOver;
  {
    std::unique_lock lock(mutex_);
    if (closing_) {
      const bool escalates =
          role_ == Role::kStream && mode == CloseMode::kAbort && stream_.Escalate(**operation);
      lock.unlock();
      if (escalates) {
        stream_.Abort();
        return op;
      }
      context_->Discard(**operation);
      return ClosedHandle();
    }
    role = BeginClosing();
    if (role == Role::kStream) ending = stream_.BeginClose(mode, *operation);
  }
  if (role == Role::kStream) {
    if (ending == StreamState::Ending::kInOrder) context_->SetAlarm(op, deadline);
    stream_.GoOnClosing(ending);
    return op;
  }
  if (role == Role::kListener) listener_->Close();
  context_->Finish(**operation, absl::OkStatus());
  context_->Remove(id_);
  return op;
}

void SocketState::Abort() {
  if (ListenerState* const listening = listener()) return listening->Close();
  if (role_ == Role::kStream) stream_.Abort();
}

void SocketState::CloseQuietly() {
  std::optional<StreamState::Ending> ending;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    if (role_ == Role::kStream && stream_.connected()) {
      BeginClosing();
      ending = stream_.BeginClose(CloseMode::kGraceful, nullptr);
    }
  }
  if (!ending.has_value()) return Drop();
  stream_.GoOnClosing(*ending);
}

void SocketState::Drop() {
  const ContextCall call(context_.get());
  if (!call.ok()) return;
  Role role = Role::kNone;
  StreamState::Ending ending = StreamState::Ending::kOver;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    role = BeginClosing();
    if (role == Role::kStream) ending = stream_.BeginClose(CloseMode::kAbort, nullptr);
  }
  if (role == Role::kStream) return stream_.GoOnClosing(ending);
  if (role == Role::kListener) listener_->Close();
  context_->Remove(id_);
}

void SocketState::DropAlsoClosing() {
  const ContextCall call(context_.get());
  if (call.ok() && closing_) return Abort();
  Drop();
}

absl::Status SocketState::Cancel(OpId op, CancelMode mode) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  EventType type = EventType::kNone;
  provider::Transfer* transfer = nullptr;
  context_->operations().With(op, [&](Operation& found) {
    if (found.socket != id_) return;
    type = found.type;
    transfer = &found.transfer;
  });
  if (type == EventType::kNone) {
    return MakeError(ErrorKind::kBadHandle, "no such operation on this socket, or it has ended");
  }
  if (type == EventType::kPoll) {
    FinishPoll(op, MakeError(ErrorKind::kCancelled, "Cancel was called"));
  } else if (type != EventType::kAccept) {
    stream_.Cancel(op, type, transfer, mode);
  } else if (ListenerState* const listening = listener()) {
    listening->FinishAccept(op, MakeError(ErrorKind::kCancelled, "Cancel was called"));
  }
  return absl::OkStatus();
}

int SocketState::CancelAll(Direction direction) {
  const auto wanted = [&](const Operation& operation) {
    if (operation.socket != id_) return false;
    switch (operation.type) {
      case EventType::kSend:
      case EventType::kSendV:
      case EventType::kSendFile:
        return direction != Direction::kReceive;
      case EventType::kRecv:
      case EventType::kRecvV:
      case EventType::kRecvFile:
      case EventType::kAccept:
      case EventType::kUrgent:
        return direction != Direction::kSend;
      default:
        return false;
    }
  };
  // The newest first, so that none begins because an older one has made way.
  std::vector<OpId> ids = context_->operations().List(wanted);
  std::ranges::reverse(ids);
  return static_cast<int>(std::ranges::count_if(
      ids, [&](OpId op) { return Cancel(op, CancelMode::kIfNotStarted).ok(); }));
}

void SocketState::OnDeadline(OpId op, EventType type) {
  if (type == EventType::kShutdown) return stream_.OnShutdownLate(op);
  if (type == EventType::kClose) return stream_.OnCloseLate();
  if (type == EventType::kPoll) {
    return FinishPoll(op,
                      MakeError(ErrorKind::kDeadlineExceeded, "nothing held before the deadline"));
  }
  if (type != EventType::kAccept) return stream_.OnTransferLate(op);
  if (ListenerState* const listening = listener()) {
    listening->FinishAccept(
        op, MakeError(ErrorKind::kDeadlineExceeded, "no connection came before the deadline"));
  }
}

Transport SocketState::transport() const {
  if (const ListenerState* const listening = listener()) {
    return context_->transport(listening->fabric());
  }
  return role_ == Role::kStream ? context_->transport(stream_.fabric()) : Transport::kNone;
}

SocketStats SocketState::Stats() const {
  const ListenerState* const listening = listener();
  if (listening == nullptr) return stream_.Stats();
  SocketStats stats;
  stats.ended_before_accept = listening->ended_before_accept();
  return stats;
}

Address SocketState::local() const {
  if (const ListenerState* const listening = listener()) return listening->local();
  if (role_ == Role::kStream) return stream_.local();
  const std::lock_guard lock(mutex_);
  return bound_to_;
}

}  // namespace esdp::sockets
