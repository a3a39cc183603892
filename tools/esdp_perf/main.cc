#include <cstdio>
#include <utility>
#include <vector>

#include "tools/esdp_perf/options.h"
#include "tools/esdp_perf/report.h"
#include "tools/esdp_perf/session.h"
#include "tools/esdp_perf/simulated.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "esdp_perf: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = esdp_perf::ParseOptions(argc, argv);
  if (!options.ok()) return Fail(options.status()), 2;
  if (options->help) return std::fputs(esdp_perf::kUsage, stdout), 0;
  if (options->server) {
    const absl::Status status = esdp_perf::Serve(*options);
    return status.ok() ? 0 : Fail(status);
  }
  std::vector<esdp_perf::Result> results;
  for (const esdp_perf::Task& task : options->tasks) {
    auto result = options->testbed.empty() ? esdp_perf::RunTask(*options, task)
                                           : esdp_perf::RunSimulated(*options, task);
    if (!result.ok()) return Fail(result.status());
    results.push_back(*std::move(result));
  }
  const std::string text = options->json ? esdp_perf::Json(results) : esdp_perf::Table(results);
  std::fputs(text.c_str(), stdout);
  return 0;
}
