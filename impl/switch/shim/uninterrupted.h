#ifndef ESDP_IMPL_SWITCH_SHIM_UNINTERRUPTED_H_
#define ESDP_IMPL_SWITCH_SHIM_UNINTERRUPTED_H_

#include <pthread.h>
#include <signal.h>

namespace esdp::switching {

// While one lives its thread handles no signal and is not cancelled. It does not wait for anything
// that a signal would end: nobody leaves it by a jump. One within another is no system call.
//
//   Owns:     nothing.
//   Threads:  its own.
//   Blocks:   never.
//   Units:    -
//   Errors:   none.
class Uninterrupted {
 public:
  // A handler that comes before signals are blocked counts for itself.
  Uninterrupted() {
    if (depth_ == 0) {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
    }
    ++depth_;
  }
  ~Uninterrupted() {
    if (--depth_ > 0) return;
    pthread_setcancelstate(cancel_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

 private:
  static inline thread_local constinit int depth_ = 0;
  static inline thread_local constinit int cancel_ = 0;
  static inline thread_local constinit sigset_t before_ = {};
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_UNINTERRUPTED_H_
