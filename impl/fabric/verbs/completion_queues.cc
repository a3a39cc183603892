#include "impl/fabric/verbs/completion_queues.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "impl/base/status.h"

namespace esdp::fabric::verbs {

absl::Status CompletionQueues::Open() {
  channel_ = device_.calls().create_comp_channel(device_.context());
  if (channel_ == nullptr) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      std::string("no completion channel: ") + strerror(errno));
  }
  const int flags = fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::UnavailableError("the completion channel cannot be polled");
  }
  return absl::OkStatus();
}

CompletionQueues::~CompletionQueues() {
  for (const Queue& queue : queues_) device_.calls().destroy_cq(queue.queue);
  if (channel_ != nullptr) device_.calls().destroy_comp_channel(channel_);
}

absl::StatusOr<ibv_cq*> CompletionQueues::Reserve(int entries) {
  const int wanted = device_.is_iwarp() ? kEntriesIwarp : kEntries;
  const int most = std::min(wanted, device_.completions_max());
  for (Queue& queue : queues_) {
    if (queue.reserved + entries > most) continue;
    queue.reserved += entries;
    return queue.queue;
  }
  if (entries > most) {
    return absl::ResourceExhaustedError("the device's completion queues are too short for this");
  }
  ibv_cq* const made = device_.calls().create_cq(device_.context(), most, channel_);
  if (made == nullptr) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      std::string("the device has no completion queue left: ") + strerror(errno));
  }
  queues_.push_back(Queue{made, entries, false});
  armed_ = false;
  return made;
}

void CompletionQueues::Release(ibv_cq* queue, int entries) {
  for (Queue& each : queues_) {
    if (each.queue == queue) each.reserved -= entries;
  }
}

size_t CompletionQueues::Poll(absl::Span<ibv_wc> completions) {
  size_t count = 0;
  for (size_t i = 0; i < queues_.size() && count < completions.size(); ++i) {
    Queue& queue = queues_[next_];
    next_ = next_ + 1 < queues_.size() ? next_ + 1 : 0;
    const int found = device_.calls().poll_cq(
        queue.queue, static_cast<int>(completions.size() - count), completions.data() + count);
    if (found <= 0) continue;
    count += static_cast<size_t>(found);
    // An armed queue tells once: of this.
    queue.armed = false;
    armed_ = false;
  }
  return count;
}

void CompletionQueues::TakeNotice() {
  ibv_cq* told = nullptr;
  if (device_.calls().get_cq_event(channel_, &told) != 0) return;
  device_.calls().ack_cq_events(told, 1);
  for (Queue& queue : queues_) {
    if (queue.queue == told) queue.armed = armed_ = false;
  }
}

void CompletionQueues::Arm() {
  for (Queue& queue : queues_) {
    if (!queue.armed) queue.armed = device_.calls().request_notify(queue.queue) == 0;
  }
  armed_ = true;
}

}  // namespace esdp::fabric::verbs
