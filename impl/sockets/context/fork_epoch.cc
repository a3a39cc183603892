#include "impl/sockets/context/fork_epoch.h"

#include <pthread.h>

#include <utility>

namespace esdp::sockets {
namespace {

constinit const HeldInForks* first_held = nullptr;

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

namespace {

void InChild() {
  fork_epoch.fetch_add(1, std::memory_order_relaxed);
  HeldInForks::LetGoOfAll();
}

// As the library is loaded: not at the first Context, since a fork just then would leave it to
// nobody, and so that the handlers of whoever uses the library, which may call it, come before.
[[gnu::constructor]] void WatchForks() {
  (void)pthread_atfork(HeldInForks::HoldAll, HeldInForks::LetGoOfAll, InChild);
}

}  // namespace
}  // namespace esdp::sockets
