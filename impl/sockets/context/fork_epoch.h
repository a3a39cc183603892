#ifndef ESDP_IMPL_SOCKETS_CONTEXT_FORK_EPOCH_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_FORK_EPOCH_H_

#include <atomic>
#include <cstdint>

namespace esdp::sockets {

extern std::atomic<uint32_t> fork_epoch;

// A number that changes in the child of every fork. What was opened under another number must not
// be used: its threads and its queue pairs are the parent's.
inline uint32_t ForkEpoch() { return fork_epoch.load(std::memory_order_relaxed); }

// ForkEpoch, and from now on it changes: to be asked first.
uint32_t WatchForks();

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_FORK_EPOCH_H_
