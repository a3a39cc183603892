#ifndef ESDP_IMPL_SWITCH_PAIR_NAME_H_
#define ESDP_IMPL_SWITCH_PAIR_NAME_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>

#include "impl/switch/engine_interface.h"

namespace esdp::switching {

// The name of the engine's end of a stream pair: which connection is relayed through it. So it is
// known in any process that has the program's end, which no table of its own tells of: one that was
// executed with it, or that was handed it.

// `unique`: no two ends that are there have the same. The length of the name.
socklen_t WritePairName(const ConnectionNames& names, uint64_t unique, sockaddr_un& name);
// False: it is another name, and `names` is as it was.
bool ReadPairName(const sockaddr_un& name, socklen_t bytes, ConnectionNames& names);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_PAIR_NAME_H_
