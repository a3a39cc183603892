#ifndef ESDP_IMPL_PROVIDER_SUBMISSIONS_H_
#define ESDP_IMPL_PROVIDER_SUBMISSIONS_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace esdp::provider {

// Requests left by threads that found the shard lock taken, for its holder, in order.
//
//   Owns:     its copies of the requests.
//   Threads:  Push and empty from any; Drain only by the holder of the shard lock, and not from
//             within a visit.
//   Blocks:   never for longer than a push takes.
//   Units:    –
//   Errors:   –; allocates only while more requests wait than ever before, and more than a burst.
template <typename Request>
class Submissions {
 public:
  Submissions() {
    waiting_.reserve(kBurst);
    taken_.reserve(kBurst);
  }

  void Push(const Request& request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(request);
    filled_.store(true);
  }

  // Sequentially consistent: after a Release of the lock it tells of every Push whose TryTake
  // failed before.
  bool empty() const { return !filled_.load(); }

  // Visits what waits now and returns whether there was anything. A visit may Push; that is seen by
  // the next Drain.
  template <typename Visit>
  bool Drain(Visit visit) {
    if (empty()) return false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      filled_.store(false);
      waiting_.swap(taken_);
    }
    for (const Request& request : taken_) visit(request);
    taken_.clear();
    return true;
  }

 private:
  static constexpr size_t kBurst = 64;

  std::mutex mutex_;
  std::vector<Request> waiting_;
  std::vector<Request> taken_;  // the holder's alone
  std::atomic<bool> filled_{false};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SUBMISSIONS_H_
