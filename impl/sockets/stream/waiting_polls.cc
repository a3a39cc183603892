#include "impl/sockets/stream/waiting_polls.h"

#include <algorithm>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"

namespace esdp::sockets {

absl::StatusOr<OpId> WaitingPolls::Add(SocketId socket, uint32_t mask, const OpArgs& args) {
  absl::StatusOr<Operation*> made = context_.NewOperation(EventType::kPoll, socket, args);
  if (!made.ok()) return made.status();
  Operation& operation = **made;
  const OpId op = operation.id;
  operation.poll_mask = mask;
  operation.has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    const bool closed = closed_;
    if (closed || !Append(polls_, &operation)) {
      lock.unlock();
      context_.Discard(operation);
      return closed ? ClosedHandle() : NoMemory();
    }
  }
  context_.SetAlarm(op, args.deadline);
  return op;
}

// Its event says which of the bits it asked for.
bool WaitingPolls::TellFirst(uint32_t bits) {
  Operation* operation = nullptr;
  Event event;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        polls_, [&](const Operation* it) { return (bits & (it->poll_mask | kPollFailed)) != 0; });
    if (found == polls_.end()) return false;
    operation = *found;
    polls_.erase(found);
    event.bytes = bits & (operation->poll_mask | kPollFailed);
  }
  context_.Finish(*operation, event);
  return true;
}

void WaitingPolls::Finish(OpId op, const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = TakeNamed(polls_, op);
  }
  if (operation != nullptr) context_.Finish(*operation, status);
}

void WaitingPolls::Close() {
  std::vector<Operation*> polls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    polls.swap(polls_);
  }
  for (Operation* operation : polls) context_.Finish(*operation, ClosedHandle());
}

}  // namespace esdp::sockets
