#include "impl/provider/lead.h"

namespace esdp::provider {

bool Lead::TryTake() {
  bool free = false;
  if (!taken_.compare_exchange_strong(free, true)) return false;
  changes_.fetch_add(1);
  return true;
}

// Sequentially consistent, as the look in StandBy is: either the thread sees that the lead is free,
// or this call sees that the thread wants to be told.
void Lead::GiveBack() {
  changes_.fetch_add(1);
  taken_.store(false);
  if (!wants_notice_.load()) return;
  const std::lock_guard lock(mutex_);
  wants_notice_.store(false);
  notice_.notify_one();
}

void Lead::StandBy() {
  std::unique_lock lock(mutex_);
  standing_by_.store(true);
  int quiet_graces = 0;
  while (!stopped_) {
    const uint32_t before = changes_.load();
    notice_.wait_for(lock, kGrace, [this] { return stopped_; });
    if (changes_.load() != before) {
      quiet_graces = 0;
    } else if (!taken_.load()) {
      break;
    } else if (++quiet_graces == kQuietGraces) {
      quiet_graces = 0;
      wants_notice_.store(true);
      if (taken_.load()) {
        notice_.wait(lock, [this] { return stopped_ || !wants_notice_.load(); });
      }
      wants_notice_.store(false);
    }
  }
  standing_by_.store(false);
}

void Lead::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  notice_.notify_one();
}

}  // namespace esdp::provider
