#include "impl/sockets/stream/stream_polls.h"

#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"
#include "impl/sockets/stream/polled.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

void StreamPolls::Watch() {
  if (!watches_.exchange(true)) stream_.AskForReadiness();
}

void StreamPolls::OnReadiness(const provider::Readiness& readiness) {
  {
    const std::lock_guard lock(mutex_);
    readiness_ = readiness;
  }
  TellChange();
}

void StreamPolls::OnEnd(bool in_order) {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    failed_ = !in_order;
    readiness_ = {.ended = true};
  }
  TellChange();
}

void StreamPolls::SetListener(std::shared_ptr<ReadinessListener> listener) {
  const std::lock_guard lock(mutex_);
  has_listener_ = true;
  listener_.swap(listener);  // what was there goes after the lock
}

void StreamPolls::ForgetListener(const ReadinessListener* listener) {
  std::shared_ptr<ReadinessListener> forgotten;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (listener_.get() != listener) return;
  has_listener_ = false;
  forgotten.swap(listener_);
}

std::shared_ptr<ReadinessListener> StreamPolls::Listener() const {
  if (!has_listener_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(mutex_);
  return listener_;
}

uint32_t StreamPolls::Bits() const {
  const std::lock_guard lock(mutex_);
  return BitsLocked();
}

uint32_t StreamPolls::BitsLocked() const {
  const bool ended = readiness_.ended || over_;
  uint32_t bits = 0;
  if (readiness_.readable || ended) bits |= kPollReadable;
  if (readiness_.writable || over_) bits |= kPollWritable;  // a send fails without a wait
  if (readiness_.urgent) bits |= kPollUrgent;
  if (ended) bits |= kPollPeerEnded;
  if (failed_) bits |= kPollFailed;
  return bits;
}

absl::StatusOr<OpId> StreamPolls::Poll(uint32_t mask, const OpArgs& args) {
  absl::StatusOr<Operation*> made = context_.NewOperation(EventType::kPoll, id_, args);
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
  Watch();
  TellPolls();
  return op;
}

void StreamPolls::TellChange() {
  if (const auto listener = Listener()) listener->OnReadinessChange();
  TellPolls();
}

// One after the other, since each may be the last holder of its queue.
void StreamPolls::TellPolls() {
  for (;;) {
    Operation* operation = nullptr;
    Event event;
    {
      const std::lock_guard lock(mutex_);
      operation = TakePolled(polls_, BitsLocked(), event);
    }
    if (operation == nullptr) return;
    context_.Finish(*operation, event);
  }
}

void StreamPolls::Finish(OpId op, const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = TakeNamed(polls_, op);
  }
  if (operation != nullptr) context_.Finish(*operation, status);
}

void StreamPolls::Close() {
  std::vector<Operation*> polls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    polls.swap(polls_);
  }
  for (Operation* operation : polls) context_.Finish(*operation, ClosedHandle());
}

}  // namespace esdp::sockets
