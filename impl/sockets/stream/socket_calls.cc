#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/stream/socket_state.h"

// Making and ending connections.

namespace esdp::sockets {
namespace {

using Kind = provider::Request::Kind;

constexpr absl::Duration kConnectWait = absl::Seconds(30);

// False: there was no memory for it.
template <typename List>
bool Append(List& list, Operation* operation) {
  try {
    list.push_back(operation);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

absl::Status ClosedHandle() {
  return MakeError(ErrorKind::kShutDown, "Close was called on this socket");
}

}  // namespace

absl::Status SocketState::Bind(const Address& address) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  const std::lock_guard lock(mutex_);
  if (closing_) return ClosedHandle();
  if (phase_ != Phase::kNew) {
    return MakeError(ErrorKind::kWrongState, "Bind must come before Connect and Listen");
  }
  if (address.family() != family_) {
    return MakeError(ErrorKind::kInvalidArgument,
                     address.ToString() + " is not of the socket's address family");
  }
  local_ = address;
  bound_ = true;
  return absl::OkStatus();
}

absl::Status SocketState::Listen(int backlog) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (backlog < 1) {
    return MakeError(ErrorKind::kInvalidArgument, "the backlog of a listener is at least 1");
  }
  Address address;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return ClosedHandle();
    if (phase_ != Phase::kNew) {
      return MakeError(ErrorKind::kWrongState, "this socket listens already, or is connected");
    }
    phase_ = Phase::kListening;
    address = bound_ ? local_ : Address::Any(family_, 0);
  }
  provider::Shard& shard = context_->shard();
  const auto self = shared_from_this();
  const auto listener = OrNoMemory([&] {
    return shard.Listen(ToProvider(address), backlog, ToConnectionOptions(),
                        [&](provider::ListenerId name) { context_->Bind(name, self); });
  });
  if (!listener.ok()) {
    phase_ = Phase::kNew;
    return Adopt(listener.status());
  }
  const auto where = shard.ListenerAddress(*listener);
  fabric_ = shard.FabricOf(*listener);
  {
    const std::lock_guard lock(mutex_);
    listener_ = *listener;
    local_ = where.ok() ? FromProvider(*where) : address;
  }
  if (!closing_) return absl::OkStatus();
  StopListening();  // Close came too early to find it
  return ClosedHandle();
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
  absl::StatusOr<Operation*> operation = context_->NewOperation(EventType::kConnect, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  Address local = Address::Any(family_, 0);
  {
    std::unique_lock lock(mutex_);
    if (closing_ || phase_ != Phase::kNew) {
      lock.unlock();
      context_->Discard(**operation);
      if (closing_) return ClosedHandle();
      return MakeError(ErrorKind::kWrongState, "this socket is connected, connecting or listening");
    }
    phase_ = Phase::kConnecting;
    peer_ = address;
    connect_ = *operation;
    if (bound_) local = local_;
  }
  const absl::Time deadline =
      args.deadline == absl::InfiniteFuture() ? context_->Now() + kConnectWait : args.deadline;
  const auto self = shared_from_this();
  const auto connection = OrNoMemory([&] {
    return context_->shard().Connect(ToProvider(local), ToProvider(address), ToConnectionOptions(),
                                     context_->ToShardTime(deadline),
                                     [&](provider::ConnectionId name) {
                                       connection_ = name;
                                       context_->Bind(name, self);
                                     });
  });
  if (connection.ok()) {
    // Close and Cancel may have come before there was a name to tell the shard.
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      over = closing_ || connect_cancelled_;
    }
    if (over) SubmitToConnection({.kind = Kind::kAbort});
    return op;
  }
  {
    const std::lock_guard lock(mutex_);
    connect_ = nullptr;
    phase_ = closing_ ? Phase::kEnded : Phase::kNew;
  }
  context_->Discard(**operation);
  if (closing_) MaybeFinishClose();
  return Adopt(connection.status());
}

absl::StatusOr<OpId> SocketState::Accept(int count, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (count < 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the count of Accept is 0 (until cancelled) or a number of connections");
  }
  if (closing_) return ClosedHandle();
  if (phase_ != Phase::kListening) {
    return MakeError(ErrorKind::kWrongState, "this socket does not listen: call Listen first");
  }
  absl::StatusOr<Operation*> operation = context_->NewOperation(EventType::kAccept, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  (*operation)->accepts_left = count;
  (*operation)->has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    if (closing_) {
      lock.unlock();
      context_->Discard(**operation);
      return ClosedHandle();
    }
    if (!Append(accepts_, *operation)) {
      lock.unlock();
      context_->Discard(**operation);
      return NoMemory();
    }
    if (count != 1) (*operation)->queue->AddOpenEnded(1);
  }
  context_->SetAlarm(op, args.deadline);
  Match();
  return op;
}

absl::StatusOr<OpId> SocketState::Shutdown(const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (absl::Status can = CanTransfer(true); !can.ok()) return can;
  absl::StatusOr<Operation*> operation = context_->NewOperation(EventType::kShutdown, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  (*operation)->has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    if (write_shut_ || phase_ != Phase::kConnected) {
      lock.unlock();
      context_->Discard(**operation);
      return CanTransfer(true);
    }
    if (!Append(shutdowns_, *operation)) {
      lock.unlock();
      context_->Discard(**operation);
      return NoMemory();
    }
    write_shut_ = true;
  }
  context_->SetAlarm(op, args.deadline);
  SubmitToConnection({.kind = Kind::kShutdown});
  return op;
}

absl::StatusOr<OpId> SocketState::Close(CloseMode mode, const OpArgs& args) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  absl::StatusOr<Operation*> operation = context_->NewOperation(EventType::kClose, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  (*operation)->has_alarm = args.deadline != absl::InfiniteFuture();
  Phase phase;
  {
    std::unique_lock lock(mutex_);
    if (closing_.exchange(true)) {
      const bool escalates = mode == CloseMode::kAbort && close_ != nullptr &&
                             close_mode_ == CloseMode::kGraceful && closing_abort_ == nullptr;
      if (escalates) closing_abort_ = *operation;
      lock.unlock();
      if (escalates) {
        SubmitToConnection({.kind = Kind::kAbort});
        return op;
      }
      context_->Discard(**operation);
      return ClosedHandle();
    }
    phase = phase_;
    close_mode_ = phase == Phase::kConnected ? mode : CloseMode::kAbort;
    close_ = *operation;
    close_status_ = absl::OkStatus();  // unless the connection has yet to end
    if (phase == Phase::kNew) phase_ = Phase::kEnded;
  }
  if (phase == Phase::kListening) {
    StopListening();
    phase_ = Phase::kEnded;
  }
  if (phase != Phase::kConnected && phase != Phase::kConnecting) {
    MaybeFinishClose();
    return op;
  }
  if (close_mode_ == CloseMode::kAbort) {
    SubmitToConnection({.kind = Kind::kAbort});
  } else {
    context_->SetAlarm(op, args.deadline);
    SubmitToConnection({.kind = Kind::kClose});
  }
  return op;
}

void SocketState::SubmitToConnection(provider::Request request) {
  request.connection = connection_;
  context_->shard().Submit(request);
}

// A destructor calls this, and a list of its own might find no memory.
void SocketState::StopListening() {
  const auto take_accept = [this](Operation*& first) {
    const std::lock_guard lock(mutex_);
    if (accepts_.empty()) return false;
    first = accepts_.front();
    accepts_.pop_front();
    return true;
  };
  provider::ListenerId listener;
  {
    const std::lock_guard lock(mutex_);
    listener = listener_;
  }
  context_->Unbind(listener);
  (void)OrNoMemory([&] { return context_->shard().StopListening(listener); });
  for (Operation* operation = nullptr; take_accept(operation);) {
    if (operation->accepts_left != 1) operation->queue->AddOpenEnded(-1);
    context_->Finish(*operation, MakeError(ErrorKind::kShutDown, "the listener was closed"));
  }
  decltype(arrived_) arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
  }
  for (const auto& [id, socket] : arrived) socket->Drop();
  for (const auto& [id, untaken] : context_->untaken().TakeAllOf(id_)) untaken.socket->Drop();
}

void SocketState::Abort() {
  const Phase phase = phase_;
  if (phase == Phase::kListening) StopListening();
  if (phase == Phase::kConnected || phase == Phase::kConnecting) {
    SubmitToConnection({.kind = Kind::kAbort});
  }
}

void SocketState::CloseQuietly() {
  if (phase_ != Phase::kConnected) return Drop();
  {
    const std::lock_guard lock(mutex_);
    if (closing_.exchange(true)) return;
  }
  SubmitToConnection({.kind = Kind::kClose});
}

void SocketState::AnnounceTaken() { SubmitToConnection({.kind = Kind::kTaken}); }

void SocketState::Drop() {
  const ContextCall call(context_.get());
  if (!call.ok()) return;
  {
    const std::lock_guard lock(mutex_);
    if (closing_.exchange(true)) return;
    close_mode_ = CloseMode::kAbort;
  }
  const Phase phase = phase_;
  Abort();
  if (phase != Phase::kConnected && phase != Phase::kConnecting) {
    phase_ = Phase::kEnded;
    context_->Remove(id_);
  }
}

void SocketState::DropAlsoClosing() {
  const ContextCall call(context_.get());
  if (call.ok() && closing_) return Abort();
  Drop();
}

}  // namespace esdp::sockets
