#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "impl/switch/entry.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/executed.h"
#include "impl/switch/shim/made.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"

// The calls that execute a program. What it has of our numbers it reads and writes with no switch that
// knows of it: these are relayed from then on. A child of vfork does it in our memory.

namespace esdp::switching {
namespace {

constexpr size_t kMostArguments = 1024;

bool AnyIsDirect() {
  bool any = false;
  table.ForEach([&](const Connection& each) {
    any = any || each.state == State::kSettingUp || each.state == State::kDirect;
  });
  return any;
}

// Numbers that the caller keeps, by the files that they are: it may have copies that nobody has seen.
void RelayKept() {
  constexpr int kLeast = 256;
  for (int number = 0; number <= std::max(kLeast, table.highest()); ++number) {
    const int flags = made.fcntl.get()(number, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    const ino_t inode = InodeOf(number);
    table.ForEach([&](Connection& each) {
      if (IsSwitched(each.state) && each.inode == inode) (void)RelayInstead(each);
    });
  }
}

void BeforeExec() {
  if (!libc::taken_numbers.any()) return;
  const KeptErrno kept;
  const TableLock lock;
  NoteShared();
  if (AnyIsDirect()) RelayKept();
}

// The process goes on beside the program that it starts, and both may use a connection that nobody
// has looked at yet: it is relayed here, where one that decides for itself would have it alone.
// `kept`: those alone that the program has under the same number.
void RelayUndecided(bool kept) {
  if (!libc::taken_numbers.any() || !IsThisProcess()) return;
  const KeptErrno errno_kept;
  for (int number = 0; number <= table.highest(); ++number) {
    if (!libc::taken_numbers.Has(number)) continue;
    if (kept && (made.fcntl.get()(number, F_GETFD) & FD_CLOEXEC) != 0) continue;
    (void)DecideUnseen(number);
  }
}

void BeforeCommand() {
  RelayUndecided(/*kept=*/true);
  BeforeExec();
}

// What a child is given is in `actions`, which tell nobody.
void BeforeSpawn(const posix_spawn_file_actions_t* actions) {
  if (actions == nullptr) return BeforeCommand();
  RelayUndecided(/*kept=*/false);
  if (!libc::taken_numbers.any()) return;
  const KeptErrno kept;
  const TableLock lock;
  NoteShared();
  RelayAllInstead();
}

// The arguments of execl and its kind; null: too many.
using Arguments = std::array<char*, kMostArguments>;
bool Collect(const char* first, va_list rest, Arguments& arguments) {
  size_t count = 0;
  arguments[count++] = const_cast<char*>(first);
  while (arguments[count - 1] != nullptr) {
    if (count == arguments.size()) {
      errno = E2BIG;
      return false;
    }
    arguments[count++] = va_arg(rest, char*);
  }
  return true;
}

}  // namespace

constinit ExecutedCalls executed;

void ResolveExecuted() {
  (void)executed.execve.Resolve();
  (void)executed.execv.Resolve();
  (void)executed.execvp.Resolve();
  (void)executed.execvpe.Resolve();
  (void)executed.fexecve.Resolve();
  (void)executed.posix_spawn.Resolve();
  (void)executed.posix_spawnp.Resolve();
  (void)executed.system.Resolve();
  (void)executed.popen.Resolve();
}

ESDP_ENTRY(int, ExecVE, "execve", (const char* path, char* const* arguments, char* const* names)) {
  BeforeExec();
  return executed.execve.get()(path, arguments, names);
}

ESDP_ENTRY(int, ExecV, "execv", (const char* path, char* const* arguments)) {
  BeforeExec();
  return executed.execv.get()(path, arguments);
}

ESDP_ENTRY(int, ExecVP, "execvp", (const char* file, char* const* arguments)) {
  BeforeExec();
  return executed.execvp.get()(file, arguments);
}

ESDP_ENTRY(int, ExecVPE, "execvpe",
           (const char* file, char* const* arguments, char* const* names)) {
  BeforeExec();
  return executed.execvpe.get()(file, arguments, names);
}

ESDP_ENTRY(int, FExecVE, "fexecve", (int fd, char* const* arguments, char* const* names)) {
  BeforeExec();
  return executed.fexecve.get()(fd, arguments, names);
}

ESDP_ENTRY(int, ExecL, "execl", (const char* path, const char* first, ...)) {
  Arguments arguments;
  va_list rest;
  va_start(rest, first);
  const bool all = Collect(first, rest, arguments);
  va_end(rest);
  BeforeExec();
  return all ? executed.execv.get()(path, arguments.data()) : -1;
}

ESDP_ENTRY(int, ExecLP, "execlp", (const char* file, const char* first, ...)) {
  Arguments arguments;
  va_list rest;
  va_start(rest, first);
  const bool all = Collect(first, rest, arguments);
  va_end(rest);
  BeforeExec();
  return all ? executed.execvp.get()(file, arguments.data()) : -1;
}

ESDP_ENTRY(int, ExecLE, "execle", (const char* path, const char* first, ...)) {
  Arguments arguments;
  va_list rest;
  va_start(rest, first);
  const bool all = Collect(first, rest, arguments);
  char* const* const names = all ? va_arg(rest, char* const*) : nullptr;
  va_end(rest);
  BeforeExec();
  return all ? executed.execve.get()(path, arguments.data(), names) : -1;
}

ESDP_ENTRY(int, Spawn, "posix_spawn",
           (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,
            const posix_spawnattr_t* attributes, char* const* arguments, char* const* names)) {
  BeforeSpawn(actions);
  return executed.posix_spawn.get()(child, path, actions, attributes, arguments, names);
}

ESDP_ENTRY(int, SpawnP, "posix_spawnp",
           (pid_t * child, const char* file, const posix_spawn_file_actions_t* actions,
            const posix_spawnattr_t* attributes, char* const* arguments, char* const* names)) {
  BeforeSpawn(actions);
  return executed.posix_spawnp.get()(child, file, actions, attributes, arguments, names);
}

ESDP_ENTRY(int, System, "system", (const char* command)) {
  BeforeCommand();
  return executed.system.get()(command);
}

ESDP_ENTRY(FILE*, POpen, "popen", (const char* command, const char* mode)) {
  BeforeCommand();
  return executed.popen.get()(command, mode);
}

}  // namespace esdp::switching
