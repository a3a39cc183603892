#ifndef ESDP_TOOLS_ESDP_COPY_SENDER_H_
#define ESDP_TOOLS_ESDP_COPY_SENDER_H_

#include <string>

#include "tools/esdp_copy/options.h"

namespace esdp_copy {

// What became of one file.
struct Outcome {
  bool ok = false;
  bool again = false;  // running again with --resume may help
  std::string text;
};

Outcome SendFile(const Options& options, const std::string& path);

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_SENDER_H_
