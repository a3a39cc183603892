#ifndef ESDP_TOOLS_ESDP_PERF_OPTIONS_H_
#define ESDP_TOOLS_ESDP_PERF_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

struct Options {
  bool server = false;
  bool help = false;
  bool json = false;
  bool quiet = false;       // no line per second
  std::string address;      // server: where to listen; client: whom to call
  uint16_t port = 0;        // server, 0: any free port, which it prints
  uint64_t sessions = 0;    // server: ends after so many runs. 0: never
  std::string folder;       // server: where files are; empty: no files
  std::string file;         // client: the file on this side
  std::string testbed;      // both sides in this process, on the hosts that this file describes
  std::vector<Task> tasks;  // client: one after another; server: one, of which the fabric counts
};

extern const char kUsage[];

// InvalidArgument names the argument that is wrong and says what may stand there.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv);

// "64K", "1M", "1G" or plain bytes.
absl::StatusOr<uint64_t> ParseSize(const std::string& text);

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_OPTIONS_H_
