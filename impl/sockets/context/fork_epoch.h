#ifndef ESDP_IMPL_SOCKETS_CONTEXT_FORK_EPOCH_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_FORK_EPOCH_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace esdp::sockets {

extern std::atomic<uint32_t> fork_epoch;

// A number that changes in the child of every fork, from the load of the library on. What was opened under another number must not
// be used: its threads and its queue pairs are the parent's.
inline uint32_t ForkEpoch() { return fork_epoch.load(std::memory_order_relaxed); }

// A mutex of which the process has one, and which no other thread has during a fork: the child
// would wait for a thread that it does not have.
//
//   Owns:     nothing; the mutex and this live until the process ends.
//   Threads:  made as the process loads the library, before there are others.
//   Blocks:   a fork, until the mutex is free. Whoever has it takes no other one, and does not fork.
//   Units:    -
//   Errors:   -
class HeldInForks {
 public:
  explicit HeldInForks(std::mutex& mutex);
  HeldInForks(const HeldInForks&) = delete;
  HeldInForks& operator=(const HeldInForks&) = delete;

  // Around a fork.
  static void HoldAll();
  static void LetGoOfAll();

 private:
  std::mutex& mutex_;
  const HeldInForks* const next_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_FORK_EPOCH_H_
