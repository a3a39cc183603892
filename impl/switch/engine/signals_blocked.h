#ifndef ESDP_IMPL_SWITCH_ENGINE_SIGNALS_BLOCKED_H_
#define ESDP_IMPL_SWITCH_ENGINE_SIGNALS_BLOCKED_H_

#include <pthread.h>
#include <signal.h>

namespace esdp::switching {

// While one lives no handler of the program's runs on its thread, nor ever on one that it makes.
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
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_SIGNALS_BLOCKED_H_
