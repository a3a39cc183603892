#include "impl/switch/monotonic.h"

#include <time.h>

namespace esdp::libc {

int64_t MonotonicNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t MonotonicMilliseconds() { return MonotonicNanoseconds() / 1'000'000; }

}  // namespace esdp::libc
