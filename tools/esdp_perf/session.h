#ifndef ESDP_TOOLS_ESDP_PERF_SESSION_H_
#define ESDP_TOOLS_ESDP_PERF_SESSION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/esdp_perf/options.h"
#include "tools/esdp_perf/report.h"

// The two ends of a run. They agree on it over a control connection:
//
//     client                                server
//       | the task, a file's length           |
//       |------------------------------------>|  listens for the data connections
//       | port, a file's length               |
//       |<------------------------------------|
//       | connects them, one after another    |
//       |====================================>|  receives are posted
//       | ready                               |
//       |<------------------------------------|
//       | go                                  |
//       |------------------------------------>|  both run
//       | done                                |
//       |------------------------------------>|
//       | what the server saw                 |
//       |<------------------------------------|
//
// Either may send an error instead, which ends the run.

namespace esdp_perf {

// Serves one client after another; returns after options.sessions of them, or when it cannot
// listen. A run that fails is told on standard error, and to the client.
absl::Status Serve(const Options& options);

// Carries out one task with the server that the options name.
absl::StatusOr<Result> RunTask(const Options& options, const Task& task);

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_SESSION_H_
