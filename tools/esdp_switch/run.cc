#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tools/esdp_switch/commands.h"

namespace esdp_switch {
namespace {

constexpr char kAll[] = "use both server * *:*;use both client * *:*";

// Ahead of what is there.
void Prepend(const char* name, const std::string& value, char separator) {
  const char* const before = getenv(name);
  const bool some = before != nullptr && *before != 0;
  setenv(name, (some ? value + separator + before : value).c_str(), 1);
}

// What the switch has beside the program's descriptors lies above the limit that was, where the system
// lets that be.
void MakeRoom() {
  constexpr rlim_t kTimes = 8;
  rlimit limit = {};
  if (getenv("ESDP_SWITCH_FD_BASE") != nullptr || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = before < limit.rlim_max / kTimes ? before * kTimes : limit.rlim_max;
  if (limit.rlim_cur == before || setrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  setenv("ESDP_SWITCH_FD_BASE", std::to_string(before).c_str(), 1);
}

}  // namespace

int Run(const Words& words, char** rest) {
  std::string rules, library = BesideProgram("lib/libesdp-switch.so");
  bool told = getenv("ESDP_SWITCH_RULES") != nullptr || getenv("ESDP_SWITCH_CONFIG") != nullptr;
  size_t at = 1;
  for (; at < words.size() && words[at].starts_with("--"); at += 2) {
    const std::string& name = words[at];
    if (name == "--") {
      ++at;
      break;
    }
    if (at + 1 >= words.size()) return Complain(2, name + " wants a value");
    const std::string& value = words[at + 1];
    if (name == "--rule") {
      rules += (rules.empty() ? "" : ";") + value;
    } else if (name == "--config") {
      setenv("ESDP_SWITCH_CONFIG", value.c_str(), 1);
      told = true;
    } else if (name == "--log") {
      setenv("ESDP_SWITCH_LOG", value.c_str(), 1);
    } else if (name == "--library") {
      library = value;
    } else {
      return Complain(2, "'" + name + "' is no option of run; see --help");
    }
  }
  if (at >= words.size()) return Complain(2, "run wants a program");
  if (access(library.c_str(), R_OK) != 0) {
    return Complain(1, library + " is not there: say where with --library");
  }
  if (rules.empty() && !told) rules = kAll;
  if (!rules.empty()) Prepend("ESDP_SWITCH_RULES", rules, ';');
  Prepend("LD_PRELOAD", library, ':');
  MakeRoom();
  execvp(rest[at], rest + at);
  const int error = errno;
  (void)Complain(0, words[at] + ": " + std::strerror(error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace esdp_switch
