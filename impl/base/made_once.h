#ifndef ESDP_IMPL_BASE_MADE_ONCE_H_
#define ESDP_IMPL_BASE_MADE_ONCE_H_

#include <atomic>
#include <memory>

namespace esdp {

// What a process makes where it is first asked for, and keeps until it ends: also while it exits.
//
// The static of a function makes other threads wait for the one that makes it. The child of a fork
// has only the thread that forked, and would wait for ever: so here nobody waits. Of two threads
// that make one at the same time, one has made it for nothing.
//
//   Owns:     the value, which is never destroyed.
//   Threads:  any. A namespace's: its constructor is done before the program begins.
//   Blocks:   never.
//   Units:    -
//   Errors:   what `make` throws; the next call makes it then.
template <typename T>
class MadeOnce {
 public:
  constexpr MadeOnce() = default;
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;

  T& Get() {
    return Get([] { return std::make_unique<T>(); });
  }

  // `make` answers a std::unique_ptr<T>.
  template <typename Make>
  T& Get(const Make& make) {
    T* known = made_.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    std::unique_ptr<T> fresh = make();
    if (made_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      known = fresh.release();
    }
    return *known;
  }

 private:
  std::atomic<T*> made_{nullptr};
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_MADE_ONCE_H_
