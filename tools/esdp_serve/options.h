#ifndef ESDP_TOOLS_ESDP_SERVE_OPTIONS_H_
#define ESDP_TOOLS_ESDP_SERVE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "esdp/address.h"
#include "tools/esdp_serve/weights.h"

namespace esdp_serve {

extern const char kUsage[];

struct Options {
  bool help = false;
  std::string root = {};
  esdp::Address listen = {};
  std::string fabric = "qpip";
  std::optional<esdp::Address> metrics = {};
  bool read_only = false;
  bool links = true;
  bool one_file_system = false;
  bool drop_behind = false;
  Weights weights = {};
  uint64_t clients = 256;
  uint64_t slots = 64;  // a MiB each of what is on its way
  uint64_t threads = 4;
  uint64_t stalled_seconds = 60;
  uint64_t grace_seconds = 30;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_OPTIONS_H_
