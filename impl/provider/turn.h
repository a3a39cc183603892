#ifndef ESDP_IMPL_PROVIDER_TURN_H_
#define ESDP_IMPL_PROVIDER_TURN_H_

#include <atomic>

namespace esdp::provider {

// The turn of a shard: whoever has it may touch cores, queue pairs and tables. It is held for the
// length of a few steps and never across a wait.
//
//   Owns:     nothing.
//   Threads:  any; Release only by the thread that took it.
//   Blocks:   TryTake never; Take until the turn is free.
//   Units:    –
//   Errors:   taking it twice on one thread with Take waits for ever; TryTake answers false.
class Turn {
 public:
  bool TryTake() {
    int free = kFree;
    return state_.compare_exchange_strong(free, kTaken);
  }

  void Take() {
    if (TryTake()) return;
    while (state_.exchange(kAwaited) != kFree) state_.wait(kAwaited);
  }

  // Sequentially consistent, like TryTake: what was left for the holder before a failed TryTake is
  // seen after Release.
  void Release() {
    if (state_.exchange(kFree) == kAwaited) state_.notify_one();
  }

 private:
  enum : int { kFree, kTaken, kAwaited };
  std::atomic<int> state_{kFree};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TURN_H_
