#include "impl/switch/shim/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/by_number.h"
#include "impl/switch/shim/limits.h"
#include "impl/switch/shim/uninterrupted.h"
#include "impl/switch/taken_numbers.h"
#include "impl/switch/taker.h"

namespace esdp::switching {
namespace {

constinit libc::TakenNumbers own;
constinit std::atomic<int> first_high{-1};  // -1: not known
constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

// Where it was is kept: where the limit is higher since, ours go on to lie where they lay.
int FirstHigh(bool afresh) {
  if (const int behind = FirstBehindProgram(); behind >= 0) return behind;
  const int known = first_high.load(std::memory_order_relaxed);
  if (known >= 0 && !afresh) return known;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 3;
  const uint64_t most = std::min<uint64_t>(limit.rlim_cur, libc::TakenNumbers::kMax);
  const auto first = static_cast<int>(most / 4 * 3);
  first_high.store(first, std::memory_order_relaxed);
  return first;
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
  const Uninterrupted uninterrupted;
  pthread_mutex_lock(&mutex);
  act(what);
  pthread_mutex_unlock(&mutex);
}

void HoldDescriptors() { pthread_mutex_lock(&mutex); }

void LetGoDescriptors() { pthread_mutex_unlock(&mutex); }

int DuplicateHigh(int descriptor) {
  for (const bool afresh : {false, true}) {
    const auto made = static_cast<int>(
        by_number.get()(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, FirstHigh(afresh)));
    if (made >= 0) Own(made, true);
    if (made >= 0 || errno != EINVAL) return made;
  }
  return -1;
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
