#include "impl/switch/shim/limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"
#include "impl/switch/real_call.h"
#include "impl/switch/shim/by_number.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/taken_numbers.h"

namespace esdp::switching {
namespace {

constexpr int kNone = INT_MAX;
constinit std::atomic<int> program_limit{kNone};
constinit int first_behind = -1;

struct LimitCalls {
  libc::RealCall<int (*)(int, rlimit*)> getrlimit{"getrlimit"};
  libc::RealCall<int (*)(int, const rlimit*)> setrlimit{"setrlimit"};
  libc::RealCall<int (*)(pid_t, int, const rlimit*, rlimit*)> prlimit{"prlimit"};
  libc::RealCall<long (*)(int)> sysconf{"sysconf"};
  libc::RealCall<int (*)()> getdtablesize{"getdtablesize"};
};
constinit LimitCalls limits;

// Three for each that the program may have, and below them numbers for a limit that it raises.
int FirstBehind(long program, long process) {
  return static_cast<int>(std::max(program, std::min(process / 2, process - 3 * program)));
}

bool IsKept(int what) { return what == RLIMIT_NOFILE && first_behind >= 0; }

bool IsOwnProcess(pid_t process) { return process == 0 || process == getpid(); }

void Show(rlimit& limit) {
  const auto own = static_cast<rlim_t>(program_limit.load(std::memory_order_relaxed));
  limit.rlim_cur = std::min(limit.rlim_cur, own);
}

// The process keeps the room that it has for ours, as far as the hard limit lets it.
int Set(const rlimit& wanted) {
  rlimit now = {};
  if (limits.getrlimit.get()(RLIMIT_NOFILE, &now) != 0) return -1;
  rlimit raised = wanted;
  if (wanted.rlim_cur <= wanted.rlim_max) {
    raised.rlim_cur = std::min(std::max(wanted.rlim_cur, now.rlim_cur), wanted.rlim_max);
  }
  if (limits.setrlimit.get()(RLIMIT_NOFILE, &raised) != 0) return -1;
  program_limit.store(static_cast<int>(std::min<rlim_t>(wanted.rlim_cur, kNone - 1)),
                      std::memory_order_relaxed);
  return 0;
}

// Not by a child that shares our memory, whose limit is its own.
void NoteChange() {
  if (IsThisProcess()) (void)FirstHigh(/*afresh=*/true);
}

}  // namespace

void ResolveLimits() {
  (void)limits.getrlimit.Resolve();
  (void)limits.setrlimit.Resolve();
  (void)limits.prlimit.Resolve();
  (void)limits.sysconf.Resolve();
  (void)limits.getdtablesize.Resolve();
}

void KeepProgramLimit(const char* base, bool awake) {
  constexpr long kLeast = 8, kMost = libc::TakenNumbers::kMax;
  const long number = base == nullptr ? 0 : std::strtol(base, nullptr, 10);
  rlimit now = {};
  if (number < kLeast || number >= kMost) return;
  if (limits.getrlimit.get()(RLIMIT_NOFILE, &now) != 0) return;
  if (now.rlim_cur <= static_cast<rlim_t>(number)) return;
  if (!awake) {
    now.rlim_cur = static_cast<rlim_t>(number);
    (void)limits.setrlimit.get()(RLIMIT_NOFILE, &now);
    return;
  }
  program_limit.store(static_cast<int>(number), std::memory_order_relaxed);
  first_behind = FirstBehind(number, static_cast<long>(std::min<rlim_t>(now.rlim_cur, kMost)));
}

int FirstBehindProgram() { return first_behind; }

bool IsWithinLimit(int number) { return number < program_limit.load(std::memory_order_relaxed); }

int WithinLimit(int number) {
  if (IsWithinLimit(number)) return number;
  (void)by_number.get()(SYS_close, number);
  errno = EMFILE;
  return -1;
}

// The names that end in 64 are the same calls where a file's size is.
static_assert(sizeof(rlimit) == sizeof(rlimit64));

#define ESDP_LIMIT_ENTRIES(suffix, end)                                                 \
  ESDP_ENTRY(int, GetLimit##suffix, "getrlimit" end, (int what, rlimit* limit)) {       \
    const int result = limits.getrlimit.get()(what, limit);                             \
    if (result == 0 && IsKept(what)) Show(*limit);                                      \
    return result;                                                                      \
  }                                                                                     \
  ESDP_ENTRY(int, SetLimit##suffix, "setrlimit" end, (int what, const rlimit* limit)) { \
    if (limit != nullptr && IsKept(what)) return Set(*limit);                           \
    const int result = limits.setrlimit.get()(what, limit);                             \
    if (what == RLIMIT_NOFILE) NoteChange();                                            \
    return result;                                                                      \
  }                                                                                     \
  ESDP_ENTRY(int, ChangeLimit##suffix, "prlimit" end,                                   \
             (pid_t process, int what, const rlimit* limit, rlimit* before)) {          \
    if (!IsKept(what) || !IsOwnProcess(process)) {                                      \
      const int result = limits.prlimit.get()(process, what, limit, before);            \
      if (what == RLIMIT_NOFILE && limit != nullptr) NoteChange();                      \
      return result;                                                                    \
    }                                                                                   \
    rlimit now = {};                                                                    \
    if (limits.getrlimit.get()(what, &now) != 0) return -1;                             \
    Show(now);                                                                          \
    if (limit != nullptr && Set(*limit) != 0) return -1;                                \
    if (before != nullptr) *before = now;                                               \
    return 0;                                                                           \
  }

ESDP_LIMIT_ENTRIES(, "")
ESDP_LIMIT_ENTRIES(64, "64")
#undef ESDP_LIMIT_ENTRIES

ESDP_ENTRY(long, SystemConfiguration, "sysconf", (int what)) {
  const long known = limits.sysconf.get()(what);
  if (what != _SC_OPEN_MAX || first_behind < 0) return known;
  return std::min<long>(known, program_limit.load(std::memory_order_relaxed));
}

ESDP_ENTRY(int, DescriptorTableSize, "getdtablesize", ()) {
  const int known = limits.getdtablesize.get()();
  return first_behind < 0 ? known : std::min(known, program_limit.load(std::memory_order_relaxed));
}

}  // namespace esdp::switching
