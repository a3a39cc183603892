#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "impl/assembly/fabric_name.h"
#include "impl/assembly/fabric_table.h"
#include "impl/base/status.h"

namespace esdp {
namespace {

uint64_t ToBytes(rlim_t limit) { return limit == RLIM_INFINITY ? ~uint64_t{0} : uint64_t{limit}; }

std::string LimitText(uint64_t bytes) {
  return bytes == ~uint64_t{0} ? "unlimited" : std::to_string(bytes) + " bytes";
}

// What "auto" opens first of what there is.
const assembly::FabricRow* FirstOfAuto(const std::vector<FabricReport>& reports, bool with_local) {
  for (const assembly::FabricRow& row : assembly::FabricTable()) {
    if (row.in_auto == assembly::InAuto::kNever) continue;
    if (row.transport == Transport::kLocal && !with_local) continue;
    const bool available = std::any_of(reports.begin(), reports.end(), [&](const auto& report) {
      return report.name == row.name && report.available;
    });
    if (available) return &row;
  }
  return nullptr;
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
  const assembly::FabricRow* const first = FirstOfAuto(report.fabrics, name->with_local);
  report.chosen = first == nullptr ? "" : first->name;
  report.reason = first == nullptr ? "there is no fabric" : first->why_auto;
}

// "a, b and c": the fabrics whose memory the limit on locked memory does not bound.
std::string NamesOfUnlocked() {
  std::vector<std::string> names;
  for (const assembly::FabricRow& row : assembly::FabricTable()) {
    if (!row.locks_memory) names.emplace_back(row.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
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
      {"file_pool_max", limits.file_pool_max, "bytes of memory that files pass through"},
      {"file_threads", limits.file_threads, "threads that wait for the media of files"},
      {"operations_max", options.operations_max, "operations outstanding"},
  };
}

}  // namespace

DiagnosticsReport Context::Diagnose(const ContextOptions& options) {
  DiagnosticsReport report;
  for (const assembly::FabricRow& row : assembly::FabricTable()) {
    report.fabrics.push_back(row.diagnose());
  }
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
          "; " + NamesOfUnlocked() + " lock none\n";
  return text;
}

}  // namespace esdp
