#include "impl/sockets/memory/region_anchor.h"

#include <mutex>
#include <utility>

#include "impl/sockets/context/fork_epoch.h"

namespace esdp::sockets {
namespace {

constinit std::mutex mutex;
const HeldInForks held(mutex);
RegionAnchor* first_free = nullptr;  // reached from here until the program ends, so none is a leak

}  // namespace

RegionAnchor* RegionAnchor::Take(RegionState* region, uint64_t* number) {
  RegionAnchor* anchor = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (first_free != nullptr) anchor = std::exchange(first_free, first_free->next_free_);
  }
  if (anchor == nullptr) anchor = new RegionAnchor;
  anchor->region_.store(region, std::memory_order_relaxed);
  *number = anchor->number_.fetch_add(1, std::memory_order_release) + 1;
  return anchor;
}

void RegionAnchor::Leave() {
  region_.store(nullptr, std::memory_order_relaxed);
  number_.fetch_add(1, std::memory_order_release);
  const std::lock_guard lock(mutex);
  next_free_ = std::exchange(first_free, this);
}

}  // namespace esdp::sockets
