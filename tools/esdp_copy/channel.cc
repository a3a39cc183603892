#include "tools/esdp_copy/channel.h"

#include <utility>

#include "absl/types/span.h"

namespace esdp_copy {

absl::StatusOr<Channel> Channel::Open(const std::string& fabric) {
  Channel channel;
  auto context = esdp::Context::Open({.fabric = fabric});
  if (!context.ok()) return context.status();
  channel.context_ = *std::move(context);
  auto queue = channel.context_.CreateQueue({});
  if (!queue.ok()) return queue.status();
  channel.queue_ = *std::move(queue);
  auto region = channel.context_.Allocate(kIn + kRecordBytes);
  if (!region.ok()) return region.status();
  channel.region_ = *std::move(region);
  channel.base_ = channel.region_.info().base;
  return channel;
}

// The ranges are ours and lie inside the region.
esdp::Slice Channel::OutSlice(uint64_t length) const {
  return region_.slice(kOut, length).value_or(esdp::Slice());
}

esdp::Slice Channel::InSlice(uint64_t length) const {
  return region_.slice(kIn, length).value_or(esdp::Slice());
}

absl::StatusOr<esdp::Event> Channel::Take(absl::Time deadline) {
  esdp::Event event;
  const auto count = queue_.Dequeue(absl::MakeSpan(&event, 1), {.deadline = deadline});
  if (!count.ok()) return count.status();
  KeptArrived(event);
  return event;
}

bool Channel::KeptArrived(const esdp::Event& event) {
  if (event.type != esdp::EventType::kAccept) return false;
  if (event.ok()) arrived_.push_back(event.accepted);
  return true;
}

absl::StatusOr<esdp::Event> Channel::Next() {
  for (;;) {
    auto event = Take(context_.Now() + kPatience);
    if (!event.ok() || event->type != esdp::EventType::kAccept) return event;
  }
}

std::optional<esdp::Event> Channel::TryNext() {
  for (;;) {
    esdp::Event event;
    if (queue_.TryDequeue(absl::MakeSpan(&event, 1)).value_or(0) == 0) return std::nullopt;
    if (!KeptArrived(event)) return event;
  }
}

absl::StatusOr<esdp::SocketId> Channel::NextArrived() {
  while (arrived_.empty()) {
    const auto event = Take(absl::InfiniteFuture());
    if (!event.ok()) return event.status();
    if (event->type == esdp::EventType::kAccept && !event->ok()) return event->status();
  }
  const esdp::SocketId first = arrived_.front();
  arrived_.pop_front();
  return first;
}

void Channel::Close(esdp::Socket& socket, esdp::CloseMode mode) {
  const absl::Time deadline = context_.Now() + kClosePatience;
  Await(socket.Close(mode, {.queue = queue_, .deadline = deadline})).IgnoreError();
}

absl::Status Channel::Await(const absl::StatusOr<esdp::OpId>& op) {
  if (!op.ok()) return op.status();
  for (;;) {
    const auto event = Next();
    if (!event.ok()) return event.status();
    if (event->op == *op && event->terminal()) return event->status();
  }
}

}  // namespace esdp_copy
