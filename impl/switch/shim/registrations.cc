#include "impl/switch/shim/registrations.h"

#include <sched.h>

#include "impl/switch/monotonic.h"

namespace esdp::switching {
namespace {

constexpr int64_t kTakenOverAfter = 2;  // milliseconds, the first of which may be nearly over

bool Take(std::atomic<bool>& held, bool waits) {
  if (!held.exchange(true, std::memory_order_acquire)) return true;
  if (!waits) return false;
  const int64_t until = libc::MonotonicMilliseconds() + kTakenOverAfter;
  while (held.exchange(true, std::memory_order_acquire)) {
    if (libc::MonotonicMilliseconds() >= until) return true;
    (void)sched_yield();
  }
  return true;
}

}  // namespace

Registrations::Hold::Hold(Registrations& registrations, Waits waits)
    : registrations_(registrations), has_(Take(registrations.held_, waits == Waits::kYes)) {}

Registrations::Hold::~Hold() {
  if (has_) registrations_.held_.store(false, std::memory_order_release);
}

void Registrations::Note(int set, int operation, int number, const epoll_event* event) {
  Registration* place = nullptr;
  for (Registration& each : all_) {
    if (each.number == number && each.set == set) place = &each;
    if (place == nullptr && each.number < 0) place = &each;
  }
  if (place == nullptr) {
    lost_one_ = true;
  } else if (operation == EPOLL_CTL_DEL) {
    if (place->number == number) *place = {};
  } else {
    *place = {.set = set, .number = number, .events = event->events, .data = event->data.u64};
  }
}

void Registrations::Forget(int number) {
  for (Registration& each : all_) {
    if (each.number == number) each = {};
  }
}

}  // namespace esdp::switching
