#ifndef ESDP_IMPL_SWITCH_SHIM_EXECUTED_H_
#define ESDP_IMPL_SWITCH_SHIM_EXECUTED_H_

#include <spawn.h>
#include <sys/types.h>

#include <cstdio>

#include "impl/switch/real_call.h"

namespace esdp::switching {

// The calls of libc that execute a program.
struct ExecutedCalls {
  using Words = char* const*;
  using SpawnCall = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                            const posix_spawnattr_t*, Words, Words);

  libc::RealCall<int (*)(const char*, Words, Words)> execve{"execve"};
  libc::RealCall<int (*)(const char*, Words)> execv{"execv"};
  libc::RealCall<int (*)(const char*, Words)> execvp{"execvp"};
  libc::RealCall<int (*)(const char*, Words, Words)> execvpe{"execvpe"};
  libc::RealCall<int (*)(int, Words, Words)> fexecve{"fexecve"};
  libc::RealCall<SpawnCall> posix_spawn{"posix_spawn"};
  libc::RealCall<SpawnCall> posix_spawnp{"posix_spawnp"};
  libc::RealCall<int (*)(const char*)> system{"system"};
  libc::RealCall<FILE* (*)(const char*, const char*)> popen{"popen"};
};

extern constinit ExecutedCalls executed;
void ResolveExecuted();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_EXECUTED_H_
