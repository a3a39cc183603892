#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"
#include "impl/sockets/stream/polled.h"
#include "impl/sockets/stream/stream_state.h"

// What could be done with a connection now, and operations that wait for it.

namespace esdp::sockets {

void StreamState::WatchReadiness() {
  if (!watches_.exchange(true)) Submit({.kind = provider::Request::Kind::kReadiness});
}

void StreamState::OnReadiness(const provider::Readiness& readiness) {
  {
    const std::lock_guard lock(mutex_);
    readiness_ = readiness;
  }
  TellChange();
}

void StreamState::SetListener(std::shared_ptr<ReadinessListener> listener) {
  const std::lock_guard lock(mutex_);
  has_listener_ = true;
  listener_.swap(listener);  // what was there goes after the lock
}

void StreamState::ForgetListener(const ReadinessListener* listener) {
  std::shared_ptr<ReadinessListener> forgotten;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (listener_.get() != listener) return;
  has_listener_ = false;
  forgotten.swap(listener_);
}

std::shared_ptr<ReadinessListener> StreamState::Listener() const {
  if (!has_listener_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(mutex_);
  return listener_;
}

provider::Readiness StreamState::readiness() const {
  const std::lock_guard lock(mutex_);
  return readiness_;
}

uint64_t StreamState::UnreadBytes() const { return context_.shard().UnreadBytes(connection_); }

uint32_t StreamState::PollBits() const {
  const std::lock_guard lock(mutex_);
  return PollBitsLocked();
}

uint32_t StreamState::PollBitsLocked() const {
  const bool over = phase_ == Phase::kEnded || failed_;
  const bool ended = readiness_.ended || over;
  uint32_t bits = 0;
  if (readiness_.readable || ended) bits |= kPollReadable;
  if (readiness_.writable || over) bits |= kPollWritable;  // a send fails without a wait
  if (readiness_.urgent) bits |= kPollUrgent;
  if (ended) bits |= kPollPeerEnded;
  if (over && cause_.ending != provider::EndReason::kOk) bits |= kPollFailed;
  return bits;
}

absl::StatusOr<OpId> StreamState::Poll(uint32_t mask, const OpArgs& args) {
  if (closing_) return ClosedHandle();
  const Phase phase = phase_;
  if (phase == Phase::kIdle || phase == Phase::kConnecting) return socket_.WhyNotConnected();
  absl::StatusOr<Operation*> made = context_.NewOperation(EventType::kPoll, id_, args);
  if (!made.ok()) return made.status();
  Operation& operation = **made;
  const OpId op = operation.id;
  operation.poll_mask = mask;
  operation.has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    if (closing_ || !Append(polls_, &operation)) {
      lock.unlock();
      context_.Discard(operation);
      return closing_ ? ClosedHandle() : NoMemory();
    }
  }
  context_.SetAlarm(op, args.deadline);
  WatchReadiness();
  TellPolls();
  return op;
}

void StreamState::TellChange() {
  if (const auto listener = Listener()) listener->OnReadinessChange();
  TellPolls();
}

// One after the other, since each may be the last holder of its queue.
void StreamState::TellPolls() {
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

void StreamState::FinishPoll(OpId op, const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = TakeNamed(polls_, op);
  }
  if (operation != nullptr) context_.Finish(*operation, status);
}

void StreamState::EndPolls() {
  std::vector<Operation*> polls;
  {
    const std::lock_guard lock(mutex_);
    polls.swap(polls_);
  }
  for (Operation* operation : polls) context_.Finish(*operation, ClosedHandle());
}

}  // namespace esdp::sockets
