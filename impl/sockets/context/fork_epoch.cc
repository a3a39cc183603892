#include "impl/sockets/context/fork_epoch.h"

#include <pthread.h>

namespace esdp::sockets {

std::atomic<uint32_t> fork_epoch{1};

uint32_t WatchForks() {
  static const int watched =
      pthread_atfork(nullptr, nullptr, [] { fork_epoch.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
  return ForkEpoch();
}

}  // namespace esdp::sockets
