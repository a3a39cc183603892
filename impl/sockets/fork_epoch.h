#ifndef ESDP_IMPL_SOCKETS_FORK_EPOCH_H_
#define ESDP_IMPL_SOCKETS_FORK_EPOCH_H_

#include <cstdint>

namespace esdp::sockets {

// A number that changes in the child of every fork. What was opened under another number must not
// be used: its threads and its queue pairs are the parent's.
uint32_t ForkEpoch();

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FORK_EPOCH_H_
