#ifndef ESDP_IMPL_ASSEMBLY_FABRIC_TABLE_H_
#define ESDP_IMPL_ASSEMBLY_FABRIC_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/context.h"
#include "esdp/socket.h"
#include "impl/assembly/fabric_name.h"
#include "impl/fabric/port.h"

// The table of fabrics. It is the one place to edit when a fabric is added: names, errors, "auto",
// Open and Diagnose read it.

namespace esdp::assembly {

using Log = std::function<void(std::string_view)>;

// What Open has opened: each fabric with its transport, in the order in which a socket tries them.
struct OpenedFabrics {
  std::vector<Transport> transports;
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
  std::shared_ptr<void> companion;  // kept by the Context; for "sim" the world

  absl::Status Add(Transport transport, absl::StatusOr<std::unique_ptr<fabric::Fabric>> fabric);
};

// What may follow a fabric's name behind a colon.
enum class Suffix : uint8_t {
  kNone,
  kSeed,    // a number: "sim:42"
  kDevice,  // a device, and how its peers are met: "verbs:rxe0:ib"
};

// Whether "auto" opens a fabric.
enum class InAuto : uint8_t {
  kNever,
  kIfThere,  // where it cannot be opened, "auto" does without it
  kAlways,   // where it cannot be opened, "auto" fails
};

// One fabric.
//
//   Owns:     nothing; the texts are literals.
//   Threads:  constant; `open` and `diagnose` keep no state.
//   Blocks:   `open` and `diagnose` as long as the system takes to open devices.
//   Units:    –
//   Errors:   `open`: why the fabric cannot be opened here; what it has added before that stays.
struct FabricRow {
  const char* name;
  Transport transport;
  // Every way to write it in ContextOptions::fabric, for errors.
  const char* known;
  Suffix suffix;
  InAuto in_auto;
  // What Diagnose says where "auto" takes this fabric first.
  const char* why_auto;
  // Registered memory counts against the limit on locked memory.
  bool locks_memory;
  absl::Status (*open)(const ContextOptions& options, const FabricName& name, const Log& log,
                       OpenedFabrics& opened);
  FabricReport (*diagnose)();
};

// In the order in which "auto" tries them and in which they are listed.
absl::Span<const FabricRow> FabricTable();
// Null for a name or a transport that no row has.
const FabricRow* FindFabric(std::string_view name);
const FabricRow* FindFabric(Transport transport);

// Opens the fabric that `name` names, or those of "auto".
absl::StatusOr<OpenedFabrics> OpenFabrics(const ContextOptions& options, const FabricName& name,
                                          const Log& log);

}  // namespace esdp::assembly

#endif  // ESDP_IMPL_ASSEMBLY_FABRIC_TABLE_H_
