#include "impl/sockets/context/fork_epoch.h"

#include <pthread.h>

#include <utility>

namespace esdp::sockets {
namespace {

constinit const HeldInForks* first_held = nullptr;
constinit std::atomic<bool> watched{false};

void InChild() {
  fork_epoch.fetch_add(1, std::memory_order_relaxed);
  HeldInForks::LetGoOfAll();
}

}  // namespace

constinit std::atomic<uint32_t> fork_epoch{1};

HeldInForks::HeldInForks(std::mutex& mutex)
    : mutex_(mutex), next_(std::exchange(first_held, this)) {}

void HeldInForks::HoldAll() {
  for (const HeldInForks* each = first_held; each != nullptr; each = each->next_) {
    each->mutex_.lock();
  }
}

void HeldInForks::LetGoOfAll() {
  for (const HeldInForks* each = first_held; each != nullptr; each = each->next_) {
    each->mutex_.unlock();
  }
}

uint32_t WatchForks() {
  // Nobody waits for the thread that comes first: see MadeOnce.
  if (!watched.exchange(true)) {
    (void)pthread_atfork(HeldInForks::HoldAll, HeldInForks::LetGoOfAll, InChild);
  }
  return ForkEpoch();
}

}  // namespace esdp::sockets
