#include <algorithm>
#include <vector>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/stream/socket_state.h"

// Asking operations to end.

namespace esdp::sockets {
namespace {

using Kind = provider::Request::Kind;

provider::CancelMode ToProvider(CancelMode mode) {
  return mode == CancelMode::kAbortConnection ? provider::CancelMode::kAbortConnection
                                              : provider::CancelMode::kIfNotStarted;
}

}  // namespace

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
  switch (type) {
    case EventType::kNone:
      return MakeError(ErrorKind::kBadHandle, "no such operation on this socket, or it has ended");
    case EventType::kConnect: {
      {
        const std::lock_guard lock(mutex_);
        connect_cancelled_ = connect_ != nullptr;
      }
      SubmitToConnection({.kind = Kind::kAbort});
      return absl::OkStatus();
    }
    case EventType::kAccept:
      FinishAccept(op, MakeError(ErrorKind::kCancelled, "Cancel was called"));
      return absl::OkStatus();
    case EventType::kShutdown:
    case EventType::kClose:
      // The peer may have been told: it ends as it would, or with the connection.
      if (mode == CancelMode::kAbortConnection) SubmitToConnection({.kind = Kind::kAbort});
      return absl::OkStatus();
    case EventType::kSuspend:
      SubmitToConnection({.kind = Kind::kCancelSuspend,
                          .cancel_mode = ToProvider(mode),
                          .tag = static_cast<uint64_t>(op)});
      return absl::OkStatus();
    default:
      SubmitToConnection({.kind = Kind::kCancel,
                          .transfer = transfer,
                          .cancel_mode = ToProvider(mode),
                          .tag = static_cast<uint64_t>(op)});
      return absl::OkStatus();
  }
}

int SocketState::CancelAll(Direction direction) {
  const auto wanted = [&](const Operation& operation) {
    if (operation.socket != id_) return false;
    switch (operation.type) {
      case EventType::kSend:
      case EventType::kSendV:
        return direction != Direction::kReceive;
      case EventType::kRecv:
      case EventType::kRecvV:
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

bool SocketState::FinishAccept(OpId op, const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(accepts_, [&](Operation* accept) { return accept->id == op; });
    if (found == accepts_.end()) return false;
    operation = *found;
    accepts_.erase(found);
  }
  if (operation->accepts_left != 1) operation->queue->AddOpenEnded(-1);
  context_->Finish(*operation, status);
  return true;
}

}  // namespace esdp::sockets
