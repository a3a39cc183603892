#ifndef ESDP_IMPL_SWITCH_SHIM_DIRECT_H_
#define ESDP_IMPL_SWITCH_SHIM_DIRECT_H_

#include <cstddef>

#include "impl/switch/shim/table.h"
#include "impl/switch/taker.h"

// Calls on a connection that goes directly, or will once it is set up. Nothing: it is relayed, and the
// call is the kernel's.

namespace esdp::switching {

inline constexpr size_t kMostPieces = 1024;  // IOV_MAX

libc::Taker::Count ReceiveDirect(int fd, msghdr& message, int flags);
libc::Taker::Count SendDirect(int fd, const msghdr& message, int flags);
libc::Taker::Answer ShutDirect(int fd, int how);
// The system is about to be asked when the number is ready.
void ShowReadinessOf(int fd);
// Somebody waits by edges.
void ShowEdgesOf(Connection& connection);
// What the pair has been told that its calls go by: how long they wait, where urgent bytes are.
void TellOptions(const Connection& connection);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_DIRECT_H_
