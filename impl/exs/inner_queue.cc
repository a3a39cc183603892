#include "impl/exs/inner_queue.h"

#include <sys/epoll.h>

#include <array>
#include <utility>

#include "impl/exs/library.h"

namespace esdp::exs {
namespace {

constexpr int kInnerDepth = 1 << 16;

}  // namespace

std::shared_ptr<Queue> InnerQueue::queue() {
  const std::lock_guard lock(mutex_);
  if (queue_ != nullptr) return queue_;
  absl::StatusOr<std::shared_ptr<Queue>> opened = Queue::Open(library_, kInnerDepth);
  if (opened.ok()) queue_ = *std::move(opened);
  return queue_;
}

void InnerQueue::Collect() {
  const std::shared_ptr<Queue> events = queue();
  std::array<exs_event_t, 32> ended;
  size_t taken = ended.size();
  while (events != nullptr && taken == ended.size()) {
    if (events->Dequeue(ended, 1, absl::InfinitePast(), &taken) != 0) return;
    for (size_t i = 0; i < taken; ++i) {
      static_cast<InnerEnd*>(ended[i].exs_evt_ahandle)->OnEnd(ended[i]);
    }
  }
}

void InnerQueue::BeginInterest() {
  interests_.fetch_add(1);
  Watch();
}

void InnerQueue::Watch() {
  {
    const std::lock_guard lock(mutex_);
    if (queue_ == nullptr || std::exchange(watched_, true)) return;
  }
  const uint64_t name = library_.helper().NewName();
  const int number = queue()->number();
  (void)library_.helper().Watch(number, EPOLLIN, name, [this, number, name] {
    library_.helper().Unwatch(number, name);
    {
      const std::lock_guard lock(mutex_);
      watched_ = false;
    }
    Collect();
    if (interests_.load() > 0) Watch();
  });
}

}  // namespace esdp::exs
