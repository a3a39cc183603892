#ifndef ESDP_TOOLS_ESDP_COPY_OPTIONS_H_
#define ESDP_TOOLS_ESDP_COPY_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "esdp/address.h"

namespace esdp_copy {

extern const char kUsage[];

struct Options {
  bool help = false;
  std::string fabric = "qpip";
  // The server
  std::string folder;  // not empty: serve
  std::string listen = "127.0.0.1:0";
  int sessions = 0;  // 0: without end
  // The client
  std::vector<std::string> files;
  esdp::Address server;
  bool resume = false;
  bool progress = false;
  bool quiet = false;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_OPTIONS_H_
