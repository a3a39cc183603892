#include "impl/assembly/fabric_table.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "impl/base/status.h"
#include "impl/fabric/local/local_fabric.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "impl/fabric/sim/world.h"
#include "impl/fabric/verbs/verbs_fabric.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/context/fork_epoch.h"
#include "impl/sockets/errors.h"

namespace esdp::assembly {
namespace {

using fabric::sim::World;
using sockets::MakeError;

// --- verbs ---

std::string WhyNotVerbs(const absl::Status& status) {
  return "verbs: " + std::string(FromAbsl(status.message()));
}

// The libraries of devices have locks of the whole process while they look for them: a child of fork
// that then opens a Context would wait for a thread of its parent.
constinit std::mutex looking;
const sockets::HeldInForks held(looking);

// The device that is named, or all that could lead somewhere: of these it is enough that one opens.
// `unusable`: what is wrong with others.
absl::Status OpenDevices(const FabricName& name, OpenedFabrics& opened,
                         std::vector<std::string>& unusable) {
  const bool named = !name.device.empty();
  const bool is_auto = name.transport == Transport::kNone;
  if (is_auto && !named && !fabric::verbs::HasAnyDevice()) return absl::NotFoundError("no device");
  const std::lock_guard lock(looking);
  auto devices = named ? std::vector{name.device} : fabric::verbs::ActiveDevices();
  if (devices.empty()) devices.emplace_back();  // to hear why
  const auto manager = fabric::verbs::MakeManager();
  absl::Status failure;
  bool any = false;
  for (const std::string& device : devices) {
    auto verbs = fabric::verbs::MakeVerbsFabric(
        {.device = device, .profile = name.profile, .manager = manager});
    const absl::Status status = verbs.status();
    if (status.ok()) {
      ESDP_RETURN_IF_ERROR(opened.Add(Transport::kVerbs, std::move(verbs)));
      any = true;
      continue;
    }
    failure = MakeError(ErrorKind::kFabric, WhyNotVerbs(status));
    if (!named && !absl::IsNotFound(status)) unusable.push_back(WhyNotVerbs(status));
  }
  return any ? absl::OkStatus() : failure;
}

// A device that cannot be used is logged; that there is none is only told where nothing else is
// opened.
absl::Status OpenVerbs(const ContextOptions& options, const FabricName& name, const Log& log,
                       OpenedFabrics& opened) {
  static_cast<void>(log);  // one line for each device needs no limit
  std::vector<std::string> unusable;
  absl::Status status = OpenDevices(name, opened, unusable);
  if (options.log) {
    for (const std::string& each : unusable) options.log(each);
  }
  return status;
}

FabricReport DiagnoseVerbs() {
  const std::lock_guard lock(looking);
  const auto fabric = fabric::verbs::MakeVerbsFabric();
  if (!fabric.ok()) return {"verbs", false, std::string(FromAbsl(fabric.status().message()))};
  const bool windows = (*fabric)->limits().windows;
  return {"verbs", true,
          windows ? "an RDMA device with memory windows"
                  : "an RDMA device without memory windows to rely on: what a peer is shown is "
                    "registered for each operation"};
}

// --- qpip ---

absl::Status OpenQpip(const ContextOptions& options, const FabricName& name, const Log& log,
                      OpenedFabrics& opened) {
  static_cast<void>(name);
  fabric::qpip::QpipOptions qpip;
  qpip.congestion_control = options.congestion_control;
  qpip.checksum = options.checksum;
  qpip.lend_pages = options.lend_pages;
  qpip.log = log;
  return opened.Add(Transport::kQpip, fabric::qpip::MakeQpipFabric(qpip));
}

FabricReport DiagnoseQpip() {
  return {"qpip", true, "queue pairs over TCP, IPv4 and IPv6; needs no device and no privilege"};
}

// --- sim ---

absl::StatusOr<std::shared_ptr<World>> WorldFor(const ContextOptions& options, uint64_t seed) {
  if (options.world_of == nullptr) {
    return std::make_shared<World>(fabric::sim::WorldOptions{.seed = seed});
  }
  const sockets::ContextState* other = sockets::ContextAccess::StateOf(*options.world_of).get();
  if (other == nullptr || other->transport() != Transport::kSim) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "world_of names a Context that lives in no simulated world: open it with the "
                     "fabric \"sim\"");
  }
  return std::static_pointer_cast<World>(other->companion());
}

absl::Status OpenSim(const ContextOptions& options, const FabricName& name, const Log& log,
                     OpenedFabrics& opened) {
  static_cast<void>(log);
  ESDP_ASSIGN_OR_RETURN(const std::shared_ptr<World> world, WorldFor(options, name.seed));
  opened.companion = world;
  return opened.Add(Transport::kSim, fabric::sim::MakeSimFabric(world));
}

FabricReport DiagnoseSim() {
  return {"sim", true, "any number of contexts in one process, in virtual time from one seed"};
}

// --- local ---

static_assert(static_cast<int>(LocalShare::kProved) ==
              static_cast<int>(fabric::local::Share::kProved));
static_assert(static_cast<int>(LocalShare::kNever) ==
              static_cast<int>(fabric::local::Share::kNever));

absl::Status OpenLocal(const ContextOptions& options, const FabricName& name, const Log& log,
                       OpenedFabrics& opened) {
  static_cast<void>(name);
  fabric::local::LocalOptions wanted;
  wanted.share = static_cast<fabric::local::Share>(options.local_share);
  wanted.log = log;
  auto local = fabric::local::MakeLocalFabric(wanted);
  if (local.ok()) return opened.Add(Transport::kLocal, std::move(local));
  if (absl::IsResourceExhausted(local.status())) return local.status();
  return MakeError(ErrorKind::kFabric, "local: " + std::string(FromAbsl(local.status().message())));
}

FabricReport DiagnoseLocal() {
  const auto fabric = fabric::local::MakeLocalFabric();
  if (!fabric.ok()) return {"local", false, std::string(FromAbsl(fabric.status().message()))};
  const std::string limit = fabric::local::WhyCopiedTwice();
  return {"local", true,
          "queue pairs over shared memory, between programs of one user on this host" +
              (limit.empty() ? "" : "; bytes are copied twice: " + limit)};
}

constexpr FabricRow kTable[] = {
    {.name = "local",
     .transport = Transport::kLocal,
     .known = "\"local\"",
     .suffix = Suffix::kNone,
     .in_auto = InAuto::kIfThere,
     .why_auto = "each socket takes shared memory where the peer is a program of this user on this "
                 "host that has it too, else a device where one leads to the peer, else qpip; "
                 "Socket::transport() tells which",
     .locks_memory = false,
     .open = OpenLocal,
     .diagnose = DiagnoseLocal},
    {.name = "verbs",
     .transport = Transport::kVerbs,
     .known = "\"verbs\", \"verbs:DEVICE\", \"verbs:DEVICE:ib\", \"verbs:DEVICE:native\"",
     .suffix = Suffix::kDevice,
     .in_auto = InAuto::kIfThere,
     .why_auto = "each socket takes the device where it leads to the peer, else qpip; "
                 "Socket::transport() tells which",
     .locks_memory = true,
     .open = OpenVerbs,
     .diagnose = DiagnoseVerbs},
    {.name = "qpip",
     .transport = Transport::kQpip,
     .known = "\"qpip\"",
     .suffix = Suffix::kNone,
     .in_auto = InAuto::kAlways,
     .why_auto = "there is no device, and queue pairs over TCP reach every address",
     .locks_memory = false,
     .open = OpenQpip,
     .diagnose = DiagnoseQpip},
    {.name = "sim",
     .transport = Transport::kSim,
     .known = "\"sim\", \"sim:SEED\"",
     .suffix = Suffix::kSeed,
     .in_auto = InAuto::kNever,
     .why_auto = "",
     .locks_memory = false,
     .open = OpenSim,
     .diagnose = DiagnoseSim},
};

template <typename Predicate>
const FabricRow* FindRow(Predicate predicate) {
  const auto* const found = std::find_if(std::begin(kTable), std::end(kTable), predicate);
  return found == std::end(kTable) ? nullptr : found;
}

}  // namespace

absl::Status OpenedFabrics::Add(Transport transport,
                                absl::StatusOr<std::unique_ptr<fabric::Fabric>> fabric) {
  if (!fabric.ok()) return fabric.status();
  transports.push_back(transport);
  fabrics.push_back(*std::move(fabric));
  return absl::OkStatus();
}

absl::Span<const FabricRow> FabricTable() { return kTable; }

const FabricRow* FindFabric(std::string_view name) {
  return FindRow([name](const FabricRow& row) { return row.name == name; });
}

const FabricRow* FindFabric(Transport transport) {
  return FindRow([transport](const FabricRow& row) { return row.transport == transport; });
}

absl::StatusOr<OpenedFabrics> OpenFabrics(const ContextOptions& options, const FabricName& name,
                                          const Log& log) {
  OpenedFabrics opened;
  if (name.transport != Transport::kNone) {
    ESDP_RETURN_IF_ERROR(FindFabric(name.transport)->open(options, name, log, opened));
    return opened;
  }
  for (const FabricRow& row : kTable) {
    if (row.in_auto == InAuto::kNever) continue;
    if (row.transport == Transport::kLocal && !name.with_local) continue;
    const absl::Status status = row.open(options, name, log, opened);
    const bool named = row.suffix == Suffix::kDevice && !name.device.empty();
    if (!status.ok() && (named || row.in_auto == InAuto::kAlways)) return status;
  }
  return opened;
}

}  // namespace esdp::assembly
