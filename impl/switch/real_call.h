#ifndef ESDP_IMPL_SWITCH_REAL_CALL_H_
#define ESDP_IMPL_SWITCH_REAL_CALL_H_

#include <atomic>

namespace esdp::libc {

// The next definition of that name behind the one of this library; null where there is none, which
// is then not called either: only programs for a libc with the names of _FORTIFY_SOURCE call those.
void* FindNext(const char* name);

// A call of libc that is interposed, as it is behind that.
//
//   Owns:     nothing.
//   Threads:  any; in a handler of a signal once it was resolved.
//   Blocks:   the first get(), unless Resolve came before.
//   Units:    -
//   Errors:   -
template <typename Function>
class RealCall {
 public:
  constexpr explicit RealCall(const char* name) : name_(name) {}
  RealCall(const RealCall&) = delete;
  RealCall& operator=(const RealCall&) = delete;

  Function get() {
    const Function known = found_.load(std::memory_order_relaxed);
    if (known == nullptr) [[unlikely]]
      return Resolve();
    return known;
  }
  [[gnu::noinline, gnu::cold]] Function Resolve() {
    const auto found = reinterpret_cast<Function>(FindNext(name_));
    found_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* const name_;
  std::atomic<Function> found_{nullptr};
};

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_REAL_CALL_H_
