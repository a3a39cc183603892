#ifndef ESDP_TOOLS_ESDP_PERF_WORKER_H_
#define ESDP_TOOLS_ESDP_PERF_WORKER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/esdp_perf/activity.h"
#include "tools/esdp_perf/outcome.h"
#include "tools/esdp_perf/place.h"
#include "tools/esdp_perf/station.h"
#include "tools/esdp_perf/stream.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

// Memory with every page of it there, of the region or, with `foreign`, of the station.
absl::StatusOr<Pieces> NewPieces(Station& station, const Task& task, uint64_t piece,
                                 uint64_t count);

// Moves the bytes of one side of a run: bandwidth, rate or a file.
//
//   Owns:     the connections and their buffers. Place and Station stay the caller's and must
//             outlive it.
//   Threads:  one.
//   Blocks:   never.
class Worker : public Activity {
 public:
  // What this side does of the task.
  struct Part {
    bool sends = false;
    bool receives = false;
    bool quiet = false;  // no line each second on standard error
  };
  // `file`: the mapped file of kFile, else empty; it must outlive the Station.
  Worker(const Place& place, Station& station, const Task& task, const Part& part,
         std::span<std::byte> file)
      : place_(place), station_(station), task_(task), part_(part), file_(file) {}

  absl::Status Add(esdp::Socket socket) override;
  absl::Status Begin() override;
  // At most until it is time for the next line.
  Wait NextWait() const override { return {.most = 128, .patience = absl::Milliseconds(200)}; }
  absl::Status OnEvents(absl::Span<const esdp::Event> events) override;
  bool ended() const override { return ended_; }

  // Since the warm-up ended.
  Outcome Seen() const override;
  uint64_t copied_bytes() const override;
  uint64_t memory_bytes() const override;

 private:
  absl::StatusOr<Pieces> MakePieces(uint64_t piece, uint64_t count);
  absl::Status PostAll();
  void LookAtTheClock();
  void EndWarmUp();
  Outcome Total() const;
  void PrintProgress(double seconds);
  bool Finished();

  const Place& place_;
  Station& station_;
  const Task task_;
  const Part part_;
  const std::span<std::byte> file_;
  std::vector<std::unique_ptr<Stream>> streams_;

  int64_t start_ = 0;
  bool ended_ = false;
  double elapsed_ = 0, next_line_ = 1;
  uint64_t bytes_at_line_ = 0;
  double send_seconds_ = 0, receive_seconds_ = 0, cpu_began_ = 0, cpu_seconds_ = 0;
  Outcome warm_up_;  // what it moved, and when it ended
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_WORKER_H_
