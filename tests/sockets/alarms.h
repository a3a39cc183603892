#ifndef ESDP_TESTS_SOCKETS_ALARMS_H_
#define ESDP_TESTS_SOCKETS_ALARMS_H_

#include <signal.h>
#include <sys/time.h>

namespace esdp::contract {

// SIGALRM again and again, to this thread alone: the library's own threads block every signal.
class Alarms {
 public:
  Alarms(int microseconds, void (*handler)(int), int flags = 0) {
    struct sigaction action {};
    action.sa_flags = flags;
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, &before_);
    const itimerval every{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~Alarms() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace esdp::contract

#endif  // ESDP_TESTS_SOCKETS_ALARMS_H_
