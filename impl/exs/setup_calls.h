#ifndef ESDP_IMPL_EXS_SETUP_CALLS_H_
#define ESDP_IMPL_EXS_SETUP_CALLS_H_

#include <sys/socket.h>

#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// What connect(2) and accept4(2) do with a number of the library: an errno.

namespace esdp::exs {

int Connect(Library& library, ExsSocket& socket, const sockaddr* address, socklen_t len);
int Accept(Library& library, ExsSocket& listener, sockaddr* address, socklen_t* len, int flags,
           int* number);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_SETUP_CALLS_H_
