#ifndef ESDP_IMPL_SWITCH_SHIM_BY_NUMBER_H_
#define ESDP_IMPL_SWITCH_SHIM_BY_NUMBER_H_

#include <sys/syscall.h>

#include "impl/switch/real_call.h"

// The call of libc that makes a system call by its number. What we make ourselves goes past what is
// interposed.

namespace esdp::switching {

extern constinit libc::RealCall<long (*)(long, ...)> by_number;
void ResolveByNumber();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_BY_NUMBER_H_
