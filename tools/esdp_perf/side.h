#ifndef ESDP_TOOLS_ESDP_PERF_SIDE_H_
#define ESDP_TOOLS_ESDP_PERF_SIDE_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/esdp_perf/mapped_file.h"
#include "tools/esdp_perf/ping_pong.h"
#include "tools/esdp_perf/report.h"
#include "tools/esdp_perf/worker.h"

namespace esdp_perf {

// Of the task's connections.
esdp::SocketOptions SocketOptionsFor(const Task& task);

// What client and server have in common in a run: a Context for its data, the task's connections
// and whoever moves their bytes.
class Side {
 public:
  // `file`: with kFile, this side's.
  static absl::StatusOr<std::unique_ptr<Side>> Open(const Task& task, bool client,
                                                    std::optional<MappedFile> file);

  Station& station() { return *station_; }
  absl::Status Add(esdp::Socket socket);
  absl::Status Run(bool quiet);
  // Of a file also its SHA-256, which is computed here.
  Outcome Seen() const;
  const Histogram& round_trips() const { return round_trips_; }

 private:
  Side(const Task& task, bool client, std::optional<MappedFile> file)
      : task_(task), client_(client), file_(std::move(file)) {}

  const Task task_;
  const bool client_;
  std::optional<MappedFile> file_;  // outlives the Station, whose end waits for what uses it
  std::unique_ptr<Station> station_;
  std::optional<Worker> worker_;
  std::optional<PingPong> ping_pong_;
  Histogram round_trips_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_SIDE_H_
