#ifndef ESDP_IMPL_SWITCH_ENGINE_INSIDE_H_
#define ESDP_IMPL_SWITCH_ENGINE_INSIDE_H_

#include <pthread.h>

#include <utility>

namespace esdp::switching {

// While one lives its thread is in a call of the Context of what goes directly: it is not cancelled,
// and a handler that has interrupted it does not enter another one.
class Inside {
 public:
  Inside() : entered_(!std::exchange(inside_, true)) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
  }
  ~Inside() {
    pthread_setcancelstate(cancel_, nullptr);
    if (entered_) inside_ = false;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool entered() const { return entered_; }

 private:
  static inline thread_local bool inside_ = false;

  const bool entered_;
  int cancel_ = 0;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_INSIDE_H_
