#include "impl/sockets/queue/event_wait_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace esdp::sockets {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

bool FutexSleep(std::atomic<uint32_t>& word, uint32_t seen) {
  const long slept = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  return slept != 0 && errno == EINTR;
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace esdp::sockets
