#ifndef ESDP_IMPL_PROVIDER_SHARD_LOCK_H_
#define ESDP_IMPL_PROVIDER_SHARD_LOCK_H_

#include "impl/base/mutex.h"

namespace esdp::provider {

// The lock of a shard: whoever has it may touch cores, queue pairs and tables. It is held for the
// length of a few steps and never across a wait.
//
//   Owns:     nothing.
//   Threads:  any; Release only by the thread that took it.
//   Blocks:   TryTake never; Take until the shard lock is free.
//   Units:    –
//   Errors:   taking it twice on one thread with Take waits for ever; TryTake answers false.
class ShardLock {
 public:
  bool TryTake() { return mutex_.try_lock(); }
  void Take() { mutex_.lock(); }
  // What was left for the holder before a failed TryTake is seen after this.
  void Release() { mutex_.unlock(); }

 private:
  FastMutex mutex_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SHARD_LOCK_H_
