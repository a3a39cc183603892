#ifndef ESDP_IMPL_BASE_MUTEX_H_
#define ESDP_IMPL_BASE_MUTEX_H_

#include <atomic>
#include <mutex>

namespace esdp {

// A lock that is held for a few instructions. While nobody competes for it, it costs two atomic
// exchanges and no call: each operation of an application takes several.
//
//   Owns:     nothing.
//   Threads:  any; unlock only by the thread that has it. Sequentially consistent: what was done
//             before a try_lock that failed is seen by the holder after its unlock. It must live
//             until unlock has returned, though another thread may have it before.
//   Blocks:   try_lock never; lock until it is free.
//   Units:    –
//   Errors:   locking it twice on one thread waits for ever; try_lock answers false.
class FastMutex {
 public:
  bool try_lock() {
    int free = kFree;
    return state_.compare_exchange_strong(free, kTaken);
  }

  void lock() {
    if (!try_lock()) [[unlikely]]
      Await();
  }

  void unlock() {
    if (state_.exchange(kFree) == kAwaited) [[unlikely]]
      state_.notify_one();
  }

 private:
  enum : int { kFree, kTaken, kAwaited };

  [[gnu::cold]] [[gnu::noinline]] void Await() {
    while (state_.exchange(kAwaited) != kFree) state_.wait(kAwaited);
  }

  std::atomic<int> state_{kFree};
};

// ThreadSanitizer knows in which order std::mutex may be taken.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ESDP_MUTEX_IS_WATCHED
#endif
#endif
#if defined(ESDP_MUTEX_IS_WATCHED) || defined(__SANITIZE_THREAD__)
using Mutex = std::mutex;
#else
using Mutex = FastMutex;
#endif

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_MUTEX_H_
