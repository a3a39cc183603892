#include "impl/sockets/blocking/lane.h"

#include <chrono>
#include <utility>

#include "absl/types/span.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"

namespace esdp::sockets {
namespace {

// A deadline is on the Context's clock, which is not this wait's.
constexpr auto kLook = std::chrono::milliseconds(5);

}  // namespace

Lane::Lane(std::shared_ptr<ContextState> context, uint32_t depth)
    : context_(std::move(context)),
      queue_(QueueAccess::Make(QueueState::CreateHidden(context_, {.depth = depth}))) {}

const std::shared_ptr<QueueState>& Lane::queue_state() const {
  return QueueAccess::StateOf(queue_);
}

absl::Status Lane::Enter(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  while (taken_) {
    if (deadline == absl::InfinitePast()) {
      return MakeError(ErrorKind::kWouldBlock, "another thread is in such a call");
    }
    if (deadline == absl::InfiniteFuture()) {
      left_.wait(lock);
    } else if (context_->Now() >= deadline) {
      return MakeError(ErrorKind::kDeadlineExceeded, "another thread's call was not over in time");
    } else {
      left_.wait_for(lock, kLook);
    }
  }
  taken_ = true;
  return absl::OkStatus();
}

void Lane::Leave() {
  {
    const std::lock_guard lock(mutex_);
    taken_ = false;
  }
  left_.notify_one();
}

std::optional<Event> Lane::TryNext() {
  Event event;
  const auto taken = queue_.TryDequeue(absl::MakeSpan(&event, 1));
  if (!taken.ok() || *taken == 0) return std::nullopt;
  return event;
}

absl::StatusOr<Event> Lane::Next(absl::Time deadline, OnSignal on_signal) {
  return Next(deadline, on_signal, QueueState::Lead::kTakes);
}

absl::StatusOr<Event> Lane::NextOfOthers() {
  return Next(absl::InfiniteFuture(), OnSignal::kGoesOn, QueueState::Lead::kLeaves);
}

absl::StatusOr<Event> Lane::Next(absl::Time deadline, OnSignal on_signal, QueueState::Lead lead) {
  Event event;
  for (;;) {
    const auto taken = OrNoMemory([&] {
      return queue_state()->Dequeue({&event, 1}, {.deadline = deadline}, lead);
    });
    if (taken.ok()) return event;
    if (KindOf(taken.status()) == ErrorKind::kCancelled) return ClosedHandle();
    if (KindOf(taken.status()) != ErrorKind::kSignal || !GoesOnAfterSignal(on_signal)) {
      return taken.status();
    }
  }
}

}  // namespace esdp::sockets
