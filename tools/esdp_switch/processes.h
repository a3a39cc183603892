#ifndef ESDP_TOOLS_ESDP_SWITCH_PROCESSES_H_
#define ESDP_TOOLS_ESDP_SWITCH_PROCESSES_H_

#include <array>
#include <string>
#include <vector>

#include "impl/switch/status_record.h"

namespace esdp_switch {

using esdp::switching::StatusHeader;
using esdp::switching::StatusRecord;

// By Verdict, as a rule file has them.
inline constexpr std::array kVerdicts = {"tcp", "sdp", "both", "try"};

// What a process shows. Another one may show anything: it is read, never mapped, and every value is
// looked at.
struct Shown {
  bool found = false;
  StatusHeader header;
  std::vector<StatusRecord> records;
};
Shown StatusOf(int pid);

// Those of /proc that may be looked into, in order.
std::vector<int> Processes();
std::string ReadProc(int pid, const std::string& name);
// The short name of what runs.
std::string NameOf(int pid);
const char* TextOf(esdp::switching::Reason reason);
void PrintRecords(int pid, const Shown& shown);

}  // namespace esdp_switch

#endif  // ESDP_TOOLS_ESDP_SWITCH_PROCESSES_H_
