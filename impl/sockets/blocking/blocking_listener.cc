#include "impl/sockets/blocking/blocking_listener.h"

#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_access.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {

BlockingListener::BlockingListener(std::shared_ptr<ContextState> context, Socket listening)
    : context_(std::move(context)), lane_(context_, 1), socket_(std::move(listening)) {}

absl::StatusOr<Socket> BlockingListener::Accept(absl::Time deadline, OnSignal on_signal) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  const Lane::Turn turn(lane_, deadline);
  if (!turn.status().ok()) return turn.status();
  const absl::StatusOr<OpId> op = socket_.Accept(1, {.queue = lane_.queue()});
  if (!op.ok()) return op.status();
  absl::StatusOr<Event> event = lane_.Next(deadline, on_signal);
  const absl::Status why = event.status();
  if (!event.ok()) {
    (void)socket_.Cancel(*op);
    // A connection may have come first: it is the caller's.
    event = lane_.Next(absl::InfiniteFuture(), OnSignal::kGoesOn);
  }
  if (!event.ok()) return event.status();
  if (event->ok()) return context_->TakeAccepted(event->accepted);
  return event->kind == ErrorKind::kCancelled && !why.ok() ? why : event->status();
}

void BlockingListener::Close() {
  if (const auto state = SocketAccess::StateOf(socket_)) state->Drop();
}

}  // namespace esdp::sockets
