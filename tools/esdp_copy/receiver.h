#ifndef ESDP_TOOLS_ESDP_COPY_RECEIVER_H_
#define ESDP_TOOLS_ESDP_COPY_RECEIVER_H_

#include "absl/status/status.h"
#include "tools/esdp_copy/options.h"

namespace esdp_copy {

// Takes files, one after the other. What has not arrived whole stays as NAME.part.
absl::Status Serve(const Options& options);

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_RECEIVER_H_
