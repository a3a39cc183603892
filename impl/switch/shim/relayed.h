#ifndef ESDP_IMPL_SWITCH_SHIM_RELAYED_H_
#define ESDP_IMPL_SWITCH_SHIM_RELAYED_H_

#include <sys/socket.h>

#include "impl/switch/shim/table.h"
#include "impl/switch/taker.h"

// The program reads and writes a relayed connection: the stream pair under its number, which is to
// answer as TCP does.

namespace esdp::switching {

libc::Taker::Count ReceiveRelayed(int fd, msghdr& message, int flags);
libc::Taker::Count SendRelayed(int fd, const msghdr& message, int flags);
// Of a reset that the pair could not tell: true once.
bool TakeReset(Connection& connection);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_RELAYED_H_
