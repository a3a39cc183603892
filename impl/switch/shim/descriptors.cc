#include "impl/switch/shim/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/by_number.h"
#include "impl/switch/shim/limits.h"
#include "impl/switch/taken_numbers.h"
#include "impl/switch/taker.h"

namespace esdp::switching {
namespace {

constinit libc::TakenNumbers own;
constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

int FirstHigh() {
  if (const int behind = FirstBehindProgram(); behind >= 0) return behind;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 3;
  const uint64_t most = std::min<uint64_t>(limit.rlim_cur, libc::TakenNumbers::kMax);
  return static_cast<int>(most / 4 * 3);
}

// They are taken, so that a close of the program's comes to us.
void Own(int descriptor, bool owned) {
  if (owned) {
    own.Add(descriptor);
    libc::taken_numbers.Add(descriptor);
  } else {
    own.Remove(descriptor);
    libc::taken_numbers.Remove(descriptor);
  }
}

bool IsOwn(int descriptor) { return own.Has(descriptor); }

void Undivided(void (*act)(void* what), void* what) {
  sigset_t all, before;
  int cancel = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  pthread_mutex_lock(&mutex);
  act(what);
  pthread_mutex_unlock(&mutex);
  pthread_setcancelstate(cancel, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void HoldDescriptors() { pthread_mutex_lock(&mutex); }

void LetGoDescriptors() { pthread_mutex_unlock(&mutex); }

int DuplicateHigh(int descriptor) {
  const auto made =
      static_cast<int>(by_number.get()(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, FirstHigh()));
  if (made >= 0) Own(made, true);
  return made;
}

void CloseOwn(int descriptor) {
  if (descriptor < 0) return;
  Own(descriptor, false);
  (void)libc::real.close.get()(descriptor);
}

void CloseAllOwn() {
  own.ForEach([](int descriptor) {
    Own(descriptor, false);
    (void)libc::real.close.get()(descriptor);
  });
}

int CloseRangeAround(unsigned first, unsigned last, int flags) {
  long result = 0;
  own.ForEach([&](int descriptor) {
    const auto ours = static_cast<unsigned>(descriptor);
    if (ours < first || ours > last || result != 0) return;
    if (ours > first) result = by_number.get()(SYS_close_range, first, ours - 1, flags);
    first = ours + 1;
  });
  if (result == 0 && first <= last) result = by_number.get()(SYS_close_range, first, last, flags);
  return static_cast<int>(result);
}

}  // namespace esdp::switching
