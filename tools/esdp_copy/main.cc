// Copies files to another machine: registered buffers, zero-copy pieces, a checksum, and errors
// that tell how to go on.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/esdp_copy/options.h"
#include "tools/esdp_copy/receiver.h"
#include "tools/esdp_copy/sender.h"

namespace {

constexpr int kTryAgain = 1;
constexpr int kNotUnderstood = 2;
constexpr int kGoneForGood = 3;

int Complain(const absl::Status& status, int code) {
  std::fprintf(stderr, "esdp_copy: %s\n", std::string(status.message()).c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = esdp_copy::ParseOptions({argv + 1, argv + argc});
  if (!options.ok()) return Complain(options.status(), kNotUnderstood);
  if (options->help) return std::fputs(esdp_copy::kUsage, stdout), 0;
  if (!options->folder.empty()) {
    const absl::Status status = esdp_copy::Serve(*options);
    return status.ok() ? 0 : Complain(status, kGoneForGood);
  }
  int code = 0;
  for (const std::string& file : options->files) {
    const esdp_copy::Outcome outcome = esdp_copy::SendFile(*options, file);
    if (outcome.ok) {
      if (!options->quiet) std::printf("%s: copied, SHA-256 equal\n", file.c_str());
      continue;
    }
    std::fprintf(stderr, "esdp_copy: %s: %s%s\n", file.c_str(), outcome.text.c_str(),
                 outcome.again ? ": run again with --resume to go on" : "");
    code = std::max(code, outcome.again ? kTryAgain : kGoneForGood);
  }
  return code;
}
