#include <functional>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/stream/stream_state.h"

// Making and ending connections, and asking operations to end.

namespace esdp::sockets {
namespace {

using Kind = provider::Request::Kind;

constexpr absl::Duration kConnectWait = absl::Seconds(30);

}  // namespace

absl::Status StreamState::Connect(Operation& operation, const Address& local, const Address& peer,
                                  const provider::ConnectionOptions& options, absl::Time deadline) {
  const auto tell = [&](Time last, const Named& named) {
    return context_.shard().Connect(ToProvider(local), ToProvider(peer), options, last, named);
  };
  // By reference, since a copy would take memory, and nothing here could be undone for its want.
  return BeginConnect(operation, local, peer, deadline, std::cref(tell));
}

absl::Status StreamState::ConnectOver(Operation& operation, int descriptor,
                                      const provider::ConnectionOptions& options,
                                      absl::Time deadline) {
  const auto tell = [&](Time last, const Named& named) {
    return context_.shard().ConnectOver(descriptor, options, last, named);
  };
  return BeginConnect(operation, Address(), Address(), deadline, std::cref(tell));
}

absl::Status StreamState::BeginConnect(Operation& operation, const Address& local,
                                       const Address& peer, absl::Time deadline, const Tell& tell) {
  {
    std::unique_lock lock(mutex_);
    if (closing_) {
      lock.unlock();
      context_.Discard(operation);
      return ClosedHandle();
    }
    phase_ = Phase::kConnecting;
    local_ = local;
    peer_ = peer;
    connect_ = &operation;
  }
  const absl::Time last =
      deadline == absl::InfiniteFuture() ? context_.Now() + kConnectWait : deadline;
  const std::shared_ptr<StreamState> self = Self();
  const auto connection = OrNoMemory([&] {
    return tell(context_.ToShardTime(last), [&](provider::ConnectionId name) {
      connection_ = name;
      context_.Bind(name, self);
    });
  });
  if (connection.ok()) {
    // Close and Cancel may have come before there was a name to tell the shard.
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      over = closing_ || connect_cancelled_;
    }
    if (over) Submit({.kind = Kind::kAbort});
    return absl::OkStatus();
  }
  {
    const std::lock_guard lock(mutex_);
    connect_ = nullptr;
    phase_ = closing_ ? Phase::kEnded : Phase::kIdle;
  }
  context_.Discard(operation);
  if (closing_) MaybeFinishClose();
  return Adopt(connection.status());
}

absl::StatusOr<OpId> StreamState::Shutdown(const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (absl::Status can = CanTransfer(true); !can.ok()) return can;
  absl::StatusOr<Operation*> operation = context_.NewOperation(EventType::kShutdown, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  (*operation)->has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    if (write_shut_ || phase_ != Phase::kConnected) {
      lock.unlock();
      context_.Discard(**operation);
      return CanTransfer(true);
    }
    if (!Append(shutdowns_, *operation)) {
      lock.unlock();
      context_.Discard(**operation);
      return NoMemory();
    }
    write_shut_ = true;
  }
  context_.SetAlarm(op, args.deadline);
  if (!behind_files_.Hold(Kind::kShutdown)) Submit({.kind = Kind::kShutdown});
  return op;
}

void StreamState::Cancel(OpId op, EventType type, provider::Transfer* transfer, CancelMode mode) {
  switch (type) {
    case EventType::kConnect: {
      {
        const std::lock_guard lock(mutex_);
        connect_cancelled_ = connect_ != nullptr;
      }
      return Submit({.kind = Kind::kAbort});
    }
    case EventType::kShutdown:
    case EventType::kClose:
      // The peer may have been told: it ends as it would, or with the connection.
      if (mode == CancelMode::kAbortConnection) Submit({.kind = Kind::kAbort});
      return;
    case EventType::kSuspend:
      return Submit({.kind = Kind::kCancelSuspend,
                     .cancel_mode = ToProvider(mode),
                     .tag = static_cast<uint64_t>(op)});
    case EventType::kSendFile:
    case EventType::kRecvFile:
      return behind_files_.CancelFile(op, MakeError(ErrorKind::kCancelled, "Cancel was called"),
                                      mode);
    default:
      if (behind_files_.End(op, MakeError(ErrorKind::kCancelled, "Cancel was called"),
                            ToProvider(mode))) {
        return;
      }
      return CancelTransfer(*transfer, op, ToProvider(mode));
  }
}

void StreamState::EndShort(OpId op) {
  provider::Transfer* transfer = nullptr;
  context_.operations().With(op, [&](Operation& found) { transfer = &found.transfer; });
  constexpr provider::CancelMode kMode = provider::CancelMode::kEndShort;
  if (transfer == nullptr ||
      behind_files_.End(op, MakeError(ErrorKind::kCancelled, "it has not begun"), kMode)) {
    return;
  }
  CancelTransfer(*transfer, op, kMode);
}

StreamState::Ending StreamState::BeginClose(CloseMode mode, Operation* operation) {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  const Phase phase = phase_;
  close_mode_ = phase == Phase::kConnected ? mode : CloseMode::kAbort;
  close_ = operation;
  if (operation != nullptr) close_status_ = absl::OkStatus();  // unless it has yet to end
  if (phase == Phase::kIdle) phase_ = Phase::kEnded;
  if (phase == Phase::kIdle || phase == Phase::kEnded) return Ending::kOver;
  return close_mode_ == CloseMode::kGraceful ? Ending::kInOrder : Ending::kAborted;
}

void StreamState::GoOnClosing(Ending ending) {
  polls_.waiting().Close();
  if (ending == Ending::kOver) return MaybeFinishClose();
  if (ending == Ending::kInOrder && behind_files_.Hold(Kind::kClose)) return;
  Submit({.kind = ending == Ending::kInOrder ? Kind::kClose : Kind::kAbort});
}

bool StreamState::Escalate(Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (close_ == nullptr || close_mode_ != CloseMode::kGraceful || closing_abort_ != nullptr) {
    return false;
  }
  closing_abort_ = &operation;
  return true;
}

void StreamState::Abort() {
  const Phase phase = phase_;
  if (phase == Phase::kConnected || phase == Phase::kConnecting) Submit({.kind = Kind::kAbort});
}

void StreamState::SubmitModes(provider::ModeWish send, provider::ModeWish receive) {
  Submit({.kind = Kind::kModes, .send_mode = send, .receive_mode = receive});
}

void StreamState::AskForReadiness() { Submit({.kind = Kind::kReadiness}); }

void StreamState::AnnounceTaken() { Submit({.kind = Kind::kTaken}); }

}  // namespace esdp::sockets
