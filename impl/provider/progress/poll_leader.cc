#include "impl/provider/progress/poll_leader.h"

#include <algorithm>
#include <utility>

namespace esdp::provider {

bool PollBackoff::Renew(bool changed, bool taken) {
  if (changed && taken) steady_ = std::min(2 * steady_, longest_);
  length_ = taken ? steady_ : shortest_;
  return changed || taken;
}

bool PollLeader::TryTake() {
  bool free = false;
  if (!taken_.compare_exchange_strong(free, true)) return false;
  changes_.fetch_add(1);
  return true;
}

// Sequentially consistent, as the look in StandBy is: either the thread sees that the lead is free,
// or this call sees that the thread wants to be told.
void PollLeader::GiveBack() {
  changes_.fetch_add(1);
  taken_.store(false);
  if (!wants_notice_.load()) return;
  const std::lock_guard lock(mutex_);
  wants_notice_.store(false);
  notice_.notify_one();
}

void PollLeader::HandOver() {
  changes_.fetch_add(1);
  taken_.store(false);
  const std::lock_guard lock(mutex_);
  wants_notice_.store(false);
  handed_over_ = true;
  notice_.notify_one();
}

void PollLeader::StandBy() {
  std::unique_lock lock(mutex_);
  standing_by_.store(true);
  PollBackoff backoff = backoff_;
  int quiet_backoffs = 0;
  while (!stopped_) {
    if (std::exchange(handed_over_, false) && !taken_.load()) break;
    const uint32_t before = changes_.load();
    notice_.wait_for(lock, backoff.length(), [this] { return stopped_ || handed_over_; });
    if (handed_over_) continue;
    const bool changed = changes_.load() != before;
    if (!backoff.Renew(changed, taken_.load())) break;
    quiet_backoffs = changed ? 0 : quiet_backoffs + 1;
    if (quiet_backoffs < kQuietBackoffs) continue;
    quiet_backoffs = 0;
    wants_notice_.store(true);
    if (taken_.load()) {
      notice_.wait(lock, [this] { return stopped_ || !wants_notice_.load(); });
    }
    wants_notice_.store(false);
  }
  standing_by_.store(false);
}

void PollLeader::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  notice_.notify_one();
}

}  // namespace esdp::provider
