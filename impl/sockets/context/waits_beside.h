#ifndef ESDP_IMPL_SOCKETS_CONTEXT_WAITS_BESIDE_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_WAITS_BESIDE_H_

#include <atomic>
#include <csignal>
#include <cstdint>

#include "absl/status/statusor.h"
#include "impl/base/time.h"
#include "impl/provider/progress/cpu_oversubscription.h"
#include "impl/provider/shard.h"

namespace esdp::sockets {

// How a thread waits for a descriptor of the application's and does the work of the shard's thread
// meanwhile: it looks for a while, then sleeps on both. Where looks found nothing again and again,
// only one wait in some looks, and the others sleep at once.
//
//   Owns:     nothing.
//   Threads:  any; what several do at a time may be counted wrong.
//   Blocks:   Wait, until its deadline.
//   Units:    –
//   Errors:   those of Context::WaitBeside.
class WaitsBeside {
 public:
  struct Args {
    int descriptor = -1;
    Time deadline = kTimeInfinite;
    Duration spin{};
    const sigset_t* signals = nullptr;
    bool comes_back = true;
  };
  // Once `stopped` is up and the shard has been woken it ends with kBadHandle.
  absl::StatusOr<bool> Wait(provider::Shard& shard, const Args& args,
                            const std::atomic<bool>& stopped);
  // Ends the Wait that is under way, or else the next one.
  void Wake(provider::Shard& shard) {
    wake_asked_ = true;
    shard.Wake();
  }

 private:
  bool TakeWake() { return wake_asked_.load() && wake_asked_.exchange(false); }
  bool LooksLong();
  void OnLook(bool found);
  bool GoesOnLooking(Time now, Time& end);
  Time StepAside(const provider::Shard& shard, Time now);

  static constexpr uint32_t kVainMost = 4;
  static constexpr uint32_t kWaitsBetweenTries = 16;

  std::atomic<bool> wake_asked_{false};
  std::atomic<uint32_t> in_vain_{0};  // looks in a row
  std::atomic<uint32_t> turn_{0};
  provider::CpuOversubscription crowding_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_WAITS_BESIDE_H_
