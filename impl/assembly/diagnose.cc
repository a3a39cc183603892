#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "esdp/context.h"
#include "impl/assembly/fabric_name.h"
#include "impl/base/status.h"
#include "impl/fabric/verbs/verbs_fabric.h"

namespace esdp {
namespace {

uint64_t ToBytes(rlim_t limit) { return limit == RLIM_INFINITY ? ~uint64_t{0} : uint64_t{limit}; }

std::string LimitText(uint64_t bytes) {
  return bytes == ~uint64_t{0} ? "unlimited" : std::to_string(bytes) + " bytes";
}

FabricReport DiagnoseVerbs() {
  const auto fabric = fabric::verbs::MakeVerbsFabric();
  if (!fabric.ok()) return {"verbs", false, std::string(FromAbsl(fabric.status().message()))};
  const bool windows = (*fabric)->limits().windows;
  return {"verbs", true,
          windows ? "an RDMA device with memory windows"
                  : "an RDMA device without memory windows to rely on: what a peer is shown is "
                    "registered for each operation"};
}

void Choose(const ContextOptions& options, DiagnosticsReport& report) {
  const auto name = assembly::ParseFabricName(options.fabric);
  if (!name.ok()) {
    report.reason = std::string(FromAbsl(name.status().message()));
    return;
  }
  if (name->transport != Transport::kNone) {
    report.chosen = ToString(name->transport);
    report.reason = "the options name it: nothing else is tried";
    return;
  }
  const bool device =
      std::any_of(report.fabrics.begin(), report.fabrics.end(),
                  [](const auto& each) { return each.name == "verbs" && each.available; });
  report.chosen = device ? "verbs" : "qpip";
  report.reason = device ? "each socket takes the device where it leads to the peer, else qpip; "
                           "Socket::transport() tells which"
                         : "there is no device, and queue pairs over TCP reach every address";
}

}  // namespace

DiagnosticsReport Context::Diagnose(const ContextOptions& options) {
  DiagnosticsReport report;
  report.fabrics = {
      {"qpip", true, "queue pairs over TCP, IPv4 and IPv6; needs no device and no privilege"},
      {"sim", true, "any number of contexts in one process, in virtual time from one seed"},
      DiagnoseVerbs(),
      {"local", false, "not in this build: use qpip"},
  };
  Choose(options, report);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    report.memlock_soft = ToBytes(limit.rlim_cur);
    report.memlock_hard = ToBytes(limit.rlim_max);
  }
  return report;
}

std::string DiagnosticsReport::ToString() const {
  std::string text;
  for (const FabricReport& fabric : fabrics) {
    text += fabric.name + (fabric.available ? ": available, " : ": not available, ") + fabric.text +
            "\n";
  }
  text += "chosen: " + (chosen.empty() ? std::string("none") : chosen) + " (" + reason + ")\n";
  text += "locked memory: " + LimitText(memlock_soft) + " now, at most " + LimitText(memlock_hard) +
          "; qpip and sim lock none\n";
  return text;
}

}  // namespace esdp
