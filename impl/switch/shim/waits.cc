#include "impl/switch/shim/waits.h"

#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "impl/switch/libc_calls.h"
#include "impl/switch/monotonic.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/executed.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"
#include "impl/switch/signals_blocked.h"

// The engine does its work in a thread of the program that waits with epoll, and shows in the set what
// arrives. So no thread is woken for it, neither this one nor the engine's.

namespace esdp::switching {
namespace {

using libc::real;

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;
// What moves all the time without anything for the set must not hold up signals.
constexpr int kWaitsMost = 64;

// Who waits for what is switched. What a second thread waits for would stand still while the first,
// which does the engine's work when it waits, is busy: so from then on none does it.
thread_local const char this_thread = 0;
constinit const char several_threads = 0;
constinit std::atomic<const char*> waiting_thread{nullptr};
// It has done that work, and the engine's own threads count on it to do so again.
constinit std::atomic<bool> is_counted_on{false};

bool WaitsAlone() {
  const char* known = waiting_thread.load(std::memory_order_relaxed);
  if (known == nullptr && waiting_thread.compare_exchange_strong(known, &this_thread)) return true;
  if (known == &this_thread) return true;
  if (known != &several_threads) waiting_thread.store(&several_threads);
  return false;
}

void LeaveToEngine() {
  if (is_counted_on.load(std::memory_order_relaxed) && is_counted_on.exchange(false)) {
    (void)engine.wait(-1, 0, nullptr);
  }
}

int WaitInSystem(int set, epoll_event* events, int most, int64_t nanoseconds,
                 const sigset_t* signals) {
  const int64_t rounded =
      (nanoseconds + kNanosecondsPerMillisecond - 1) / kNanosecondsPerMillisecond;
  const int timeout = nanoseconds < 0 ? -1 : static_cast<int>(rounded);
  return real.epoll_pwait.get()(set, events, most, timeout, signals);
}

int WaitForSet(int set, epoll_event* events, int most, int timeout) {
  const int64_t end = libc::MonotonicNanoseconds() + int64_t{timeout} * kNanosecondsPerMillisecond;
  const libc::SignalsBlocked until_it_sleeps;  // where they end the sleep as if they had come in it
  for (int waits = 1;; ++waits) {
    const int64_t left =
        timeout < 0 ? -1 : std::max<int64_t>(end - libc::MonotonicNanoseconds(), 0);
    if (waits == kWaitsMost) LeaveToEngine();
    const int ended =
        waits < kWaitsMost ? engine.wait(set, left, &until_it_sleeps.before()) : ENOTSUP;
    if (ended == ENOTSUP) return WaitInSystem(set, events, most, left, &until_it_sleeps.before());
    const int count = real.epoll_wait.get()(set, events, most, 0);
    if (count != 0 || ended == ETIMEDOUT) return count;
    if (ended == EINTR) {
      errno = EINTR;
      return -1;
    }
  }
}

}  // namespace

void NoteWait(WaitsIn where) {
  if (WaitsAlone() && where == WaitsIn::kEngine) return;
  const KeptErrno kept;
  LeaveToEngine();
}

void ForgetWaiter() {
  waiting_thread = nullptr;
  is_counted_on = false;
}

void SwitchTaker::Waits() noexcept { NoteWait(WaitsIn::kSystem); }

// While a thread does the engine's work it cannot be cancelled: it leaves for that.
void NoteCancellation() {
  const KeptErrno kept;
  if (IsThisProcess()) engine.end_wait();
}

libc::Taker::Answer WaitWithEpoll(int set, epoll_event* events, int most, int timeout) {
  if (most <= 0 || !IsThisProcess()) return std::nullopt;
  const int before = errno;
  const int looked = WaitsAlone() ? engine.wait(set, 0, nullptr) : ENOTSUP;
  if (looked == ENOTSUP) {
    LeaveToEngine();
    errno = before;
    return std::nullopt;
  }
  is_counted_on.store(true, std::memory_order_relaxed);
  int count = 0;
  if (looked == 0 || timeout == 0) count = real.epoll_wait.get()(set, events, most, 0);
  if (count == 0 && timeout != 0) count = WaitForSet(set, events, most, timeout);
  if (count >= 0) errno = before;
  return count;
}

}  // namespace esdp::switching
