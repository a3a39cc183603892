#ifndef ESDP_TOOLS_ESDP_PERF_SIDE_H_
#define ESDP_TOOLS_ESDP_PERF_SIDE_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/esdp_perf/mapped_file.h"
#include "tools/esdp_perf/ping_pong.h"
#include "tools/esdp_perf/place.h"
#include "tools/esdp_perf/report.h"
#include "tools/esdp_perf/worker.h"

namespace esdp_perf {

// Of the task's connections.
esdp::SocketOptions SocketOptionsFor(const Task& task);

// What client and server have in common in a run: a Context for its data, the task's connections
// and whoever moves their bytes.
class Side {
 public:
  struct Role {
    bool client = false;
    bool quiet = true;  // no line each second
  };
  // `file`: with kFile, this side's. The Place must outlive it.
  static absl::StatusOr<std::unique_ptr<Side>> Open(const Place& place, const Task& task,
                                                    const Role& role,
                                                    std::optional<MappedFile> file);

  Station& station() { return *station_; }
  Activity& activity() { return *activity_; }
  // Until it has ended, which its events are waited for.
  absl::Status Run();
  // Of a file also its SHA-256, which is computed here.
  Outcome Seen() const;
  const Histogram& round_trips() const { return round_trips_; }

 private:
  Side(const Task& task, std::optional<MappedFile> file) : task_(task), file_(std::move(file)) {}

  const Task task_;
  std::optional<MappedFile> file_;  // outlives the Station, whose end waits for what uses it
  std::unique_ptr<Station> station_;
  Histogram round_trips_;
  std::unique_ptr<Activity> activity_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_SIDE_H_
