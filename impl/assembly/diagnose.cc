#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

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

std::vector<LimitReport> LimitsOf(const ContextOptions& options) {
  const ContextLimits& limits = options.limits;
  return {
      {"connections_max", limits.connections_max, "connections in all"},
      {"connections_per_address_max", limits.connections_per_address_max,
       "incoming connections of one address"},
      {"accept_rate", limits.accept_rate, "connections a second from one address"},
      {"accept_burst", limits.accept_burst, "connections at once before that counts"},
      {"half_open_max", options.half_open_max, "set-ups that have begun and not ended"},
      {"moves_max", options.moves_max, "moves of one connection by its peer"},
      {"moves_at_once_max", options.moves_at_once_max, "connections that are being moved"},
      {"bounce_pool_bytes", options.bounce_pool_bytes, "bytes of SendCopy under way"},
      {"receive_growth_max", limits.receive_growth_max,
       "bytes by which receive buffers may grow together"},
      {"spare_connections_max", limits.spare_connections_max,
       "connections that have ended and left their memory to the next"},
      {"operations_max", options.operations_max, "operations outstanding"},
  };
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
  report.limits = LimitsOf(options);
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
  for (const LimitReport& limit : limits) {
    text += "limit " + limit.name + ": " + std::to_string(limit.value) + " (" + limit.text + ")\n";
  }
  text += "locked memory: " + LimitText(memlock_soft) + " now, at most " + LimitText(memlock_hard) +
          "; qpip and sim lock none\n";
  return text;
}

}  // namespace esdp
