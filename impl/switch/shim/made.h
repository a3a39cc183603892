#ifndef ESDP_IMPL_SWITCH_SHIM_MADE_H_
#define ESDP_IMPL_SWITCH_SHIM_MADE_H_

#include <sys/types.h>

#include <cstdio>

#include "impl/switch/real_call.h"

namespace esdp::switching {

// The calls of libc that this library interposes beside those of impl/switch: what makes, copies and
// closes numbers, what moves bytes without naming a buffer, and what ends the process.
struct MadeCalls {
  libc::RealCall<int (*)(int, int, int)> socket{"socket"};
  libc::RealCall<int (*)(int)> dup{"dup"};
  libc::RealCall<int (*)(int, int)> dup2{"dup2"};
  libc::RealCall<int (*)(int, int, int)> dup3{"dup3"};
  libc::RealCall<int (*)(int, int, ...)> fcntl{"fcntl"};
  libc::RealCall<ssize_t (*)(int, int, off_t*, size_t)> sendfile{"sendfile"};
  libc::RealCall<ssize_t (*)(int, off64_t*, int, off64_t*, size_t, unsigned)> splice{"splice"};
  libc::RealCall<FILE* (*)(int, const char*)> fdopen{"fdopen"};
  libc::RealCall<void (*)(int)> exit_now{"_exit"};
};

extern constinit MadeCalls made;
void ResolveMade();
// A number of another file, just made (or -1): from now on it is none of ours, whatever it was.
int Fresh(int number);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_MADE_H_
