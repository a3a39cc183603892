#include "tools/esdp_diag/report.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include "esdp/context.h"
#include "tools/esdp_diag/attempt.h"
#include "tools/esdp_diag/devices.h"
#include "tools/esdp_diag/route.h"

namespace esdp_diag {
namespace {

constexpr uint64_t kLittleMemory = uint64_t{64} << 20;
constexpr uint64_t kFewFiles = 4096;

// Gathers the lines of a report.
class Writer {
 public:
  explicit Writer(Report& report) : report_(report) {}

  void Title(const std::string& text) { report_.text += text + "\n"; }
  void Line(std::string name, const std::string& text) {
    name.resize(std::max<size_t>(name.size() + 1, 16), ' ');
    report_.text += "  " + name + text + "\n";
  }
  void Trouble(const std::string& name) {
    const auto& known = report_.troubles;
    if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
    report_.troubles.push_back(name);
  }

 private:
  Report& report_;
};

std::string Size(uint64_t bytes) {
  if (bytes == ~uint64_t{0}) return "unlimited";
  return bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB"
                         : std::to_string(bytes >> 20) + " MiB";
}

std::string Count(rlim_t count) {
  return count == RLIM_INFINITY ? "unlimited" : std::to_string(count);
}

void TellFabrics(const esdp::DiagnosticsReport& diagnosis, Writer& out) {
  out.Title("fabrics");
  for (const esdp::FabricReport& fabric : diagnosis.fabrics) {
    out.Line(fabric.name, (fabric.available ? "available: " : "not available: ") + fabric.text);
  }
}

void TellPort(const Device& device, const DevicePort& port, Writer& out) {
  out.Line(device.name, "port " + std::to_string(port.number) + " " + port.state + ", " +
                            port.link_layer + ", " + port.rate);
  for (const Gid& gid : port.gids) {
    out.Line("", "GID " + std::to_string(gid.index) + " " + gid.value + " " + gid.type +
                     (gid.interface.empty() ? "" : " on " + gid.interface));
  }
}

void TellDevices(const std::vector<Device>& devices, const std::string& root, Writer& out) {
  out.Title("devices");
  if (devices.empty()) {
    std::string missing;
    for (const std::string& module : MissingModules(root)) missing += " " + module;
    out.Line("none", missing.empty() ? "" : "modules that are not loaded:" + missing);
    return out.Trouble("no-device");
  }
  bool active = false;
  for (const Device& device : devices) {
    for (const DevicePort& port : device.ports) {
      TellPort(device, port, out);
      active |= port.state == "ACTIVE";
    }
  }
  if (!active) out.Trouble("link-down");
}

void TellLimits(const esdp::DiagnosticsReport& diagnosis, bool has_device, Writer& out) {
  out.Title("limits");
  out.Line("locked memory",
           Size(diagnosis.memlock_soft) + " now, at most " + Size(diagnosis.memlock_hard));
  if (has_device && diagnosis.memlock_soft < kLittleMemory) out.Trouble("memlock");
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  out.Line("open files", Count(files.rlim_cur) + " now, at most " + Count(files.rlim_max));
  if (files.rlim_cur < kFewFiles) out.Trouble("open-files");
  for (const esdp::LimitReport& limit : diagnosis.limits) {
    out.Line(limit.name, std::to_string(limit.value) + " " + limit.text);
  }
}

// A device serves an address if the route to it leaves by the interface of one of its GIDs.
bool Serves(const std::vector<Device>& devices, const std::string& interface) {
  for (const Device& device : devices) {
    for (const DevicePort& port : device.ports) {
      for (const Gid& gid : port.gids) {
        if (gid.interface == interface) return true;
      }
    }
  }
  return false;
}

void TellRoute(const esdp::Address& address, const std::vector<Device>& devices, Writer& out) {
  const auto route = RouteTo(address);
  if (!route.ok()) {
    out.Line("route", route.status().ToString());
    return out.Trouble("no-route");
  }
  out.Line("route", "from " + route->local + " by " +
                        (route->interface.empty() ? "no interface of ours" : route->interface));
  if (devices.empty()) return;
  const bool served = Serves(devices, route->interface);
  out.Line("device",
           served ? "one has a GID on this interface" : "none has a GID on this interface");
  if (!served) out.Trouble("wrong-gid");
}

}  // namespace

Report Look(const Question& question) {
  Report report;
  Writer out(report);
  const auto diagnosis = esdp::Context::Diagnose({.fabric = question.fabric});
  const std::vector<Device> devices = ReadDevices(question.root);
  TellFabrics(diagnosis, out);
  TellDevices(devices, question.root, out);
  TellLimits(diagnosis, !devices.empty(), out);
  out.Title("\"" + question.fabric + "\"" +
            (question.address ? " for " + question.address->ToString() : ""));
  out.Line("chosen", diagnosis.chosen.empty() ? "none" : diagnosis.chosen);
  out.Line("why", diagnosis.reason);
  if (question.address) TellRoute(*question.address, devices, out);
  if (question.address && question.connect) {
    const Attempt attempt = TryToConnect(question.fabric, *question.address);
    out.Line("tried", attempt.text);
    out.Trouble(attempt.trouble);
    report.connected = attempt.connected;
  }
  return report;
}

}  // namespace esdp_diag
