#ifndef ESDP_IMPL_SWITCH_SIGNALS_BLOCKED_H_
#define ESDP_IMPL_SWITCH_SIGNALS_BLOCKED_H_

#include <pthread.h>
#include <signal.h>

#include <cerrno>

namespace esdp::libc {

// While one lives no handler of the program's runs on its thread, nor ever on one that it makes. Those that come at
// its end leave errno alone, whatever they do.
//
//   Owns:     nothing.
//   Threads:  its own.
//   Blocks:   never.
//   Units:    -
//   Errors:   none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() {
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  // The mask of the thread before it, and behind it.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_SIGNALS_BLOCKED_H_
