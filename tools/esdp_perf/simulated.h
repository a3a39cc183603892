#ifndef ESDP_TOOLS_ESDP_PERF_SIMULATED_H_
#define ESDP_TOOLS_ESDP_PERF_SIMULATED_H_

#include "absl/status/statusor.h"
#include "tools/esdp_perf/options.h"
#include "tools/esdp_perf/report.h"

namespace esdp_perf {

// Carries out one task between the two hosts of options.testbed, in this thread and in virtual time:
// all figures are of that, and the same each time. Errors of the file name its line.
absl::StatusOr<Result> RunSimulated(const Options& options, const Task& task);

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_SIMULATED_H_
