#include "impl/exs/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace esdp::exs {

int FutexWait(std::atomic<uint32_t>* word, uint32_t seen, absl::Duration longest) {
  const timespec timeout = absl::ToTimespec(std::max(longest, absl::ZeroDuration()));
  const timespec* const bound = longest == absl::InfiniteDuration() ? nullptr : &timeout;
  const long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, bound, nullptr, 0);
  return result == 0 || errno == EAGAIN ? 0 : errno;
}

void FutexWakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace esdp::exs
