#ifndef ESDP_TOOLS_ESDP_GET_OPTIONS_H_
#define ESDP_TOOLS_ESDP_GET_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "esdp/address.h"

namespace esdp_get {

extern const char kUsage[];

enum class Command { kGet, kPut, kList, kStat };

struct Options {
  bool help = false;
  Command command = Command::kGet;
  esdp::Address server;
  std::vector<std::string> names;
  std::string fabric = "qpip";
  uint32_t weight = 0;  // shares asked for
  std::string to;       // of get: empty is the working folder; of put: empty is the root
  bool recursive = false;
  bool resume = false;
  bool replace = false;
  bool crc = false;
  bool sha256 = false;
  bool sync = false;
  bool progress = false;
  bool quiet = false;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_OPTIONS_H_
