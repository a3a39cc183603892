#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/esdp_switch/commands.h"
#include "tools/esdp_switch/processes.h"

namespace esdp_switch {
namespace {

int PidOf(const std::string& word) {
  char* end = nullptr;
  const long pid = std::strtol(word.c_str(), &end, 10);
  return *end == 0 && pid > 0 && pid < (1L << 22) ? static_cast<int>(pid) : 0;
}

bool IsMapped(int pid, const char* library) {
  return ReadProc(pid, "maps").find(library) != std::string::npos;
}

// What keeps the loader from loading it.
std::string WhyNotLoaded(int pid) {
  if (ReadProc(pid, "maps").empty()) return "it may not be looked into, or is the kernel's";
  if (!IsMapped(pid, "/ld-linux") && !IsMapped(pid, "/ld-")) {
    return "it is a static program (as those in Go are), which no library is loaded into";
  }
  const std::string environment = ReadProc(pid, "environ");
  if (environment.find("libesdp-switch") == std::string::npos) {
    return "it was started without LD_PRELOAD: see esdp_switch run";
  }
  return "LD_PRELOAD names it, and the loader has not taken it: set-user-id programs have it taken "
         "away, and "
         "programs for another libc do not find it";
}

}  // namespace

int List(const Words& words) {
  const int only = words.size() > 1 ? PidOf(words[1]) : 0;
  if (words.size() > 2 || (words.size() == 2 && only == 0))
    return Complain(2, "list wants a PID, or nothing");
  std::printf(
      "PID\tPROGRAM\tNUMBER\tSIDE\tLOCAL\tPEER\tRULE\tSTATE\tSDP SENT\tSDP RECEIVED\tTCP SENT\tTCP "
      "RECEIVED\tREASON\n");
  bool any = false;
  for (const int pid : only != 0 ? std::vector<int>{only} : Processes()) {
    const Shown shown = StatusOf(pid);
    any = any || shown.found;
    PrintRecords(pid, shown);
  }
  return any ? 0 : 1;
}

int Why(const Words& words) {
  const int pid = words.size() == 2 ? PidOf(words[1]) : 0;
  if (pid == 0) return Complain(2, "why wants a PID");
  const std::string name = NameOf(pid);
  if (name.empty()) return Complain(1, "there is no process " + words[1]);
  std::printf("%d %s: ", pid, name.c_str());
  if (!IsMapped(pid, "libesdp-switch.so")) {
    std::printf("all is TCP: %s\n", WhyNotLoaded(pid).c_str());
    return 1;
  }
  if (!IsMapped(pid, "libesdp-switch-engine.so")) {
    std::printf(
        "all is TCP: the library is loaded and asleep: no rule can match, or the engine is "
        "missing\n");
    return 1;
  }
  const Shown shown = StatusOf(pid);
  if (!shown.found) {
    std::printf("awake; it has had no connection that a rule was asked for\n");
    return 0;
  }
  std::printf("awake; %llu connections\n", static_cast<unsigned long long>(shown.header.made));
  for (const StatusRecord& each : shown.records) {
    std::printf("number %d: %u %s\n", each.number, static_cast<unsigned>(each.reason),
                TextOf(each.reason));
  }
  return 0;
}

}  // namespace esdp_switch
