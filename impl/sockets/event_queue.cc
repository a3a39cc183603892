#include "esdp/event_queue.h"

#include <string>
#include <utility>

#include "impl/sockets/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/event_queue_state.h"
#include "impl/sockets/socket_state.h"

namespace esdp {
namespace {

constexpr absl::Duration kAbandonWait = absl::Seconds(1);

absl::Status EmptyHandle() {
  return sockets::MakeError(ErrorKind::kBadHandle, "the event queue handle is empty or closed");
}

// A queue that goes while operations name it: their connections are aborted, and their events are
// nobody's. A Close alone is no reason: it goes on by itself.
void Abandon(sockets::QueueState& queue) {
  sockets::ContextState& context = queue.context();
  if (!context.Usable().ok() || queue.Close()) return;
  std::vector<SocketId> sockets;
  context.operations().List([&](const sockets::Operation& operation) {
    if (operation.queue.get() == &queue && operation.type != EventType::kClose) {
      sockets.push_back(operation.socket);
    }
    return false;
  });
  if (sockets.empty()) return;
  for (const SocketId id : sockets) {
    if (const auto socket = context.Find(id)) socket->DropAlsoClosing();
  }
  const absl::Time deadline = context.Now() + kAbandonWait;
  while (!queue.Close() && context.Pause(deadline)) {
  }
  if (context.options().log) {
    context.options().log("an event queue was destroyed while operations named it; " +
                          std::to_string(sockets.size()) + " were ended by aborting");
  }
}

}  // namespace

EventQueue& EventQueue::operator=(EventQueue&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) Abandon(*state_);
    state_ = std::move(other.state_);
  }
  return *this;
}

EventQueue::~EventQueue() {
  if (state_ != nullptr) Abandon(*state_);
}

absl::StatusOr<size_t> EventQueue::Dequeue(absl::Span<Event> out, const WaitArgs& wait) {
  if (state_ == nullptr) return EmptyHandle();
  return state_->Dequeue({out.data(), out.size()}, wait);
}

absl::StatusOr<size_t> EventQueue::TryDequeue(absl::Span<Event> out) {
  if (state_ == nullptr) return EmptyHandle();
  return state_->TryDequeue({out.data(), out.size()});
}

int EventQueue::fd() const {
  if (state_ == nullptr) return -1;
  const sockets::ContextCall call(&state_->context());
  return call.ok() ? state_->fd() : -1;
}

void EventQueue::Wake() {
  if (state_ != nullptr) state_->Wake();
}

absl::Status EventQueue::Resize(size_t depth) {
  return state_ == nullptr ? EmptyHandle() : state_->Resize(depth);
}

QueueStats EventQueue::Stats() const { return state_ == nullptr ? QueueStats{} : state_->Stats(); }

absl::Status EventQueue::Close() {
  if (state_ == nullptr) return EmptyHandle();
  if (!state_->Close()) {
    return sockets::MakeError(
        ErrorKind::kBusy, std::to_string(state_->reserved()) + " operations name the event queue");
  }
  state_.reset();
  return absl::OkStatus();
}

}  // namespace esdp
