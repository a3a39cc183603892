#include "esdp/event_queue.h"

#include <chrono>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp {
namespace {

constexpr Duration kAbandonWait = std::chrono::seconds(1);

absl::Status EmptyHandle() { return sockets::ClosedQueue(); }

bool IsOpen(const std::shared_ptr<sockets::QueueState>& state) {
  return state != nullptr && !state->closed();
}

// A queue that goes while operations name it: their connections are aborted, and their events are
// nobody's. A Close alone is no reason: it goes on by itself.
void Abandon(sockets::QueueState& queue) {
  sockets::ContextState& context = queue.context();
  const sockets::ContextCall call(&context);
  if (!call.ok() || queue.Close()) return;
  std::vector<SocketId> sockets;
  try {
    context.operations().List([&](const sockets::Operation& operation) {
      if (operation.queue.get() == &queue && operation.type != EventType::kClose) {
        sockets.push_back(operation.socket);
      }
      return false;
    });
  } catch (const std::bad_alloc&) {  // the others end with their sockets or with the Context
  }
  if (sockets.empty()) return;
  for (const SocketId id : sockets) {
    if (const auto socket = context.Find(id)) socket->DropAlsoClosing();
  }
  const Time deadline = AddSaturating(context.shard().Now(), kAbandonWait);
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
  if (!IsOpen(state_)) return EmptyHandle();
  return sockets::OrNoMemory([&] { return state_->Dequeue({out.data(), out.size()}, wait); });
}

absl::StatusOr<size_t> EventQueue::TryDequeue(absl::Span<Event> out) {
  if (!IsOpen(state_)) return EmptyHandle();
  return sockets::OrNoMemory([&] { return state_->TryDequeue({out.data(), out.size()}); });
}

int EventQueue::fd() const {
  if (!IsOpen(state_)) return -1;
  const sockets::ContextCall call(&state_->context());
  return call.ok() ? state_->fd() : -1;
}

void EventQueue::Wake() {
  if (state_ != nullptr) state_->Wake();
}

absl::Status EventQueue::Resize(size_t depth) {
  if (!IsOpen(state_)) return EmptyHandle();
  return sockets::OrNoMemory([&] { return state_->Resize(depth); });
}

QueueStats EventQueue::Stats() const { return state_ == nullptr ? QueueStats{} : state_->Stats(); }

absl::Status EventQueue::Close() {
  if (!IsOpen(state_)) return EmptyHandle();
  return sockets::OrNoMemory([&] {
    if (state_->Close()) return absl::OkStatus();
    return sockets::MakeError(
        ErrorKind::kBusy, std::to_string(state_->reserved()) + " operations name the event queue");
  });
}

}  // namespace esdp
