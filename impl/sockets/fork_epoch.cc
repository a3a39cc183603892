#include "impl/sockets/fork_epoch.h"

#include <pthread.h>

#include <atomic>

namespace esdp::sockets {
namespace {

std::atomic<uint32_t> epoch{1};

}  // namespace

uint32_t ForkEpoch() {
  static const int watched =
      pthread_atfork(nullptr, nullptr, [] { epoch.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
  return epoch.load(std::memory_order_relaxed);
}

}  // namespace esdp::sockets
