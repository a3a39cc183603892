#ifndef ESDP_TOOLS_ESDP_PERF_REPORT_H_
#define ESDP_TOOLS_ESDP_PERF_REPORT_H_

#include <string>
#include <vector>

#include "tools/esdp_perf/histogram.h"
#include "tools/esdp_perf/outcome.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

// One run as both sides saw it; round trips as the client measured them.
struct Result {
  Task task;
  Outcome client, server;
  Histogram round_trips;
};

// For people: one line a run, all under one heading.
std::string Table(const std::vector<Result>& results);

// One object for one run, an array for several. Units are in the names; a GB is 1e9 bytes.
std::string Json(const std::vector<Result>& results);

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_REPORT_H_
