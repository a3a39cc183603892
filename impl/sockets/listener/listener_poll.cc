#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/listener/listener_state.h"
#include "impl/sockets/stream/polled.h"

// Operations that wait until a connection waits, or none can come.

namespace esdp::sockets {

absl::StatusOr<OpId> ListenerState::Poll(uint32_t mask, const OpArgs& args) {
  absl::StatusOr<Operation*> made = context_.NewOperation(EventType::kPoll, id(), args);
  if (!made.ok()) return made.status();
  Operation& operation = **made;
  const OpId op = operation.id;
  operation.poll_mask = mask;
  operation.has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    if (closed_ || !Append(polls_, &operation)) {
      lock.unlock();
      context_.Discard(operation);
      return closed_ ? ClosedHandle() : NoMemory();
    }
  }
  context_.SetAlarm(op, args.deadline);
  TellPolls();
  return op;
}

// An Accept would not wait where one has failed.
uint32_t ListenerState::PollBitsLocked() const {
  if (!failed_.ok()) return kPollReadable | kPollFailed;
  return !arrived_.empty() && accepts_.empty() ? uint32_t{kPollReadable} : 0;
}

// One after the other, since each may be the last holder of its queue.
void ListenerState::TellPolls() {
  for (;;) {
    Operation* operation = nullptr;
    Event event;
    {
      const std::lock_guard lock(mutex_);
      operation = TakePolled(polls_, PollBitsLocked(), event);
    }
    if (operation == nullptr) return;
    context_.Finish(*operation, event);
  }
}

void ListenerState::FinishPoll(OpId op, const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = TakeNamed(polls_, op);
  }
  if (operation != nullptr) context_.Finish(*operation, status);
}

}  // namespace esdp::sockets
