#include "impl/sockets/queue/event_wait_word.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace esdp::sockets {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

namespace {

constexpr std::array kOfFaults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

}  // namespace

Handlers HandlersNow() {
  bool ends = false;
  bool restarts = false;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (std::ranges::find(kOfFaults, signal) != kOfFaults.end()) continue;
    struct sigaction action {};
    // It answers EINVAL for those that the C library keeps for itself.
    if (sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    ((action.sa_flags & SA_RESTART) != 0 ? restarts : ends) = true;
  }
  if (ends && restarts) return Handlers::kBoth;
  return restarts ? Handlers::kRestart : Handlers::kEnd;
}

bool FutexSleep(std::atomic<uint32_t>& word, uint32_t seen) {
  const long slept = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  return slept != 0 && errno == EINTR;
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace esdp::sockets
