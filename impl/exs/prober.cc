#include "impl/exs/prober.h"

#include <array>
#include <span>
#include <utility>

#include "esdp/operation.h"

namespace esdp::exs {

// A Poll ends within the call where any of the bits holds, and otherwise is taken back.
absl::StatusOr<uint32_t> Prober::Ask(Socket& socket) {
  const std::lock_guard lock(mutex_);
  if (!open_) {
    absl::StatusOr<EventQueue> events =
        context_.CreateQueue({.depth = 1, .restart_on_signal = true});
    if (!events.ok()) return events.status();
    events_ = *std::move(events);
    open_ = true;
  }
  const absl::StatusOr<OpId> op = socket.Poll(kPollAll, {.queue = events_});
  if (!op.ok()) return op.status();
  std::array<Event, 1> ended;
  absl::StatusOr<size_t> taken = events_.TryDequeue(std::span(ended));
  if (taken.value_or(0) == 0) {
    (void)socket.Cancel(*op);
    taken = events_.Dequeue(std::span(ended));
  }
  if (!taken.ok()) return taken.status();
  return ended[0].ok() ? static_cast<uint32_t>(ended[0].bytes) : 0;
}

}  // namespace esdp::exs
