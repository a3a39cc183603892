#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

// Moving a connection to a new queue pair.

namespace esdp::sockets {
namespace {

using Kind = provider::Request::Kind;

constexpr absl::Duration kSuspendWait = absl::Seconds(30);

}  // namespace

absl::Status StreamState::CanSuspend() const {
  if (socket_.closing()) return ClosedHandle();
  if (failed_ || phase_ == Phase::kEnded) return EndedStatus();
  if (phase_ != Phase::kConnected) {
    return MakeError(ErrorKind::kWrongState, "only a connected socket can be moved");
  }
  return absl::OkStatus();
}

absl::StatusOr<OpId> StreamState::Suspend(const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (absl::Status can = CanSuspend(); !can.ok()) return can;
  absl::StatusOr<Operation*> operation = context_.NewOperation(EventType::kSuspend, id_, args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  {
    std::unique_lock lock(mutex_);
    const bool under_way = suspend_ != nullptr;
    if (under_way || closing_ || phase_ != Phase::kConnected) {
      lock.unlock();
      context_.Discard(**operation);
      if (!under_way) return CanSuspend();
      return MakeError(ErrorKind::kBusy, "the connection is being moved already");
    }
    suspend_ = *operation;
  }
  const absl::Time deadline =
      args.deadline == absl::InfiniteFuture() ? context_.Now() + kSuspendWait : args.deadline;
  Submit({.kind = Kind::kSuspend,
          .tag = static_cast<uint64_t>(op),
          .at = context_.ToShardTime(deadline)});
  return op;
}

void StreamState::FinishSuspend(const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = std::exchange(suspend_, nullptr);
  }
  if (operation != nullptr) context_.Finish(*operation, status);
}

}  // namespace esdp::sockets
