#ifndef ESDP_TOOLS_ESDP_PERF_WORKER_H_
#define ESDP_TOOLS_ESDP_PERF_WORKER_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/esdp_perf/outcome.h"
#include "tools/esdp_perf/station.h"
#include "tools/esdp_perf/stream.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

// Zeroed memory, every page of it there, that belongs to its region.
absl::StatusOr<Pieces> AllocatePieces(esdp::Context& context, const Task& task, uint64_t piece,
                                      uint64_t count);

// Moves the bytes of one side of a run: bandwidth, rate or a file.
//
//   Owns:     the connections and their buffers. The Station stays the caller's and must outlive
//             it.
//   Threads:  one.
//   Blocks:   Run, until this side has sent and received all.
class Worker {
 public:
  // `sends` and `receives` are this side's directions. `file`: the mapped file of kFile, else
  // empty; it must outlive the Station.
  Worker(Station& station, const Task& task, bool sends, bool receives, std::span<std::byte> file)
      : station_(station), task_(task), sends_(sends), receives_(receives), file_(file) {}

  // Takes a connection, in order of connecting, and posts its receives.
  absl::Status Add(esdp::Socket socket);
  // `quiet`: no line each second on standard error.
  absl::Status Run(bool quiet);
  // Since the warm-up ended.
  Outcome Seen() const;

 private:
  using Clock = std::chrono::steady_clock;

  absl::StatusOr<Pieces> MakePieces(uint64_t piece, uint64_t count);
  absl::StatusOr<size_t> NextEvents();
  absl::Status TakeEvents(size_t count);
  absl::Status PostAll();
  void LookAtTheClock(bool quiet);
  void EndWarmUp();
  Outcome Total() const;
  void PrintProgress(double seconds);
  bool Finished();

  Station& station_;
  const Task task_;
  const bool sends_, receives_;
  const std::span<std::byte> file_;
  std::vector<std::unique_ptr<Stream>> streams_;

  std::array<esdp::Event, 128> events_;
  Clock::time_point start_;
  double elapsed_ = 0, next_line_ = 1;
  uint64_t bytes_at_line_ = 0;
  double send_seconds_ = 0, receive_seconds_ = 0, cpu_began_ = 0, cpu_seconds_ = 0;
  Outcome warm_up_;  // what it moved, and when it ended
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_WORKER_H_
