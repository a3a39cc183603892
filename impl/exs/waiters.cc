#include "impl/exs/waiters.h"

#include <utility>

#include "impl/exs/library.h"

namespace esdp::exs {
namespace {

constexpr int kOneAtATime = 1;

}  // namespace

Waiters::Place::Place(Library& library) : waiters_(library.waiters()) {
  {
    const std::lock_guard lock(waiters_.mutex_);
    if (!waiters_.free_.empty()) {
      queue_ = std::move(waiters_.free_.back());
      waiters_.free_.pop_back();
      return;
    }
  }
  absl::StatusOr<std::shared_ptr<Queue>> opened = Queue::Open(library, kOneAtATime);
  if (opened.ok()) queue_ = *std::move(opened);
}

Waiters::Place::~Place() {
  if (queue_ == nullptr) return;
  const std::lock_guard lock(waiters_.mutex_);
  waiters_.free_.push_back(std::move(queue_));
}

}  // namespace esdp::exs
