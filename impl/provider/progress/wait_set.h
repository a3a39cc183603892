#ifndef ESDP_IMPL_PROVIDER_PROGRESS_WAIT_SET_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_WAIT_SET_H_

#include <atomic>
#include <csignal>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "impl/base/time.h"

namespace esdp::provider {

// What a shard waits on: the fabrics' descriptors, a wake-up from another thread, a time.
//
//   Owns:     its descriptors, not the fabrics'.
//   Threads:  any, but Open, Arm and DrainWake one at a time.
//   Blocks:   only Wait.
//   Units:    spans of time from now.
//   Errors:   Open alone can fail: no descriptors left.
class WaitSet {
 public:
  enum class Result { kReady, kTimeout, kSignal };

  WaitSet() = default;
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  // Without a descriptor only wake-ups and times count.
  absl::Status Open(const std::vector<int>& fabric_fds);

  // Ends a Wait, or the next one, and makes fd() readable until DrainWake.
  void Wake();
  void DrainWake();

  // `also` ends it too when it is readable; -1 for none.
  Result Wait(Duration timeout, int also = -1, const sigset_t* signals = nullptr);

  // One descriptor for all of it, readable when Wait would return at once or the armed time has
  // come.
  int fd() const { return all_fd_; }
  // Makes fd() readable after `from_now`; kDurationInfinite disarms.
  void Arm(Duration from_now);

 private:
  int fabric_fd_ = -1;
  int group_fd_ = -1;  // an epoll descriptor over the fabrics', where there are several
  int wake_fd_ = -1;
  int timer_fd_ = -1;
  int all_fd_ = -1;  // an epoll descriptor over the three
  std::atomic<bool> woken_{false};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_WAIT_SET_H_
