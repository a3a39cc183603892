#include "impl/sockets/context/waits_beside.h"

#include <poll.h>

#include <algorithm>
#include <thread>

#include "impl/sockets/context/leading.h"
#include "impl/sockets/errors.h"

namespace esdp::sockets {
namespace {

// Or has failed, which a wait for it would tell at once.
bool IsReadable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace

bool WaitsBeside::LooksLong() {
  if (in_vain_.load(std::memory_order_relaxed) < kVainMost) return true;
  return turn_.fetch_add(1, std::memory_order_relaxed) % kWaitsBetweenTries == 0;
}

void WaitsBeside::OnLook(bool found) {
  const uint32_t vain = in_vain_.load(std::memory_order_relaxed);
  const uint32_t now = found ? 0 : std::min(vain + 1, kVainMost);
  if (now != vain) in_vain_.store(now, std::memory_order_relaxed);
}

// `end`: of the look, which may be over.
bool WaitsBeside::GoesOnLooking(Time now, Time& end) {
  if (now < end && !crowding_.Lasts(now)) return true;
  if (end != Time{}) OnLook(/*found=*/false);
  end = Time{};
  return false;
}

// Others may share this processor. Returns the time.
Time WaitsBeside::StepAside(const provider::Shard& shard, Time now) {
  std::this_thread::yield();
  const Time back = shard.Now();
  crowding_.OnBack(now, back);
  return back;
}

absl::StatusOr<bool> WaitsBeside::Wait(provider::Shard& shard, const Args& args,
                                       const std::atomic<bool>& stopped) {
  Leading leading(shard);
  if (!leading.leads()) {
    return MakeError(ErrorKind::kWouldBlock, "another thread does the work of the Context's");
  }
  if (!args.comes_back) leading.HandOver();
  if (shard.Poll() || TakeWake()) return true;
  Time now = shard.Now();
  if (now >= args.deadline) return false;
  Time end = LooksLong() ? AddSaturating(now, args.spin) : Time{};
  for (;;) {
    if (IsReadable(args.descriptor) || TakeWake()) return true;
    if (now >= args.deadline) return false;
    const bool looks = GoesOnLooking(now, end);
    const bool signalled =
        !looks && !shard.WaitForWork(args.deadline, args.descriptor, args.signals);
    now = looks ? StepAside(shard, now) : shard.Now();
    if (signalled && now < args.deadline) {
      return MakeError(ErrorKind::kSignal, "a signal ended the wait");
    }
    if (shard.Poll()) {
      if (looks) OnLook(/*found=*/true);
      return true;
    }
    if (stopped) return MakeError(ErrorKind::kBadHandle, "the Context has been closed");
  }
}

}  // namespace esdp::sockets
