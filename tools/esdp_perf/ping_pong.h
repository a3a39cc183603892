#ifndef ESDP_TOOLS_ESDP_PERF_PING_PONG_H_
#define ESDP_TOOLS_ESDP_PERF_PING_PONG_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "tools/esdp_perf/activity.h"
#include "tools/esdp_perf/histogram.h"
#include "tools/esdp_perf/place.h"
#include "tools/esdp_perf/station.h"
#include "tools/esdp_perf/stream.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

// One message there and back, again and again: one side asks, the other answers until the asking
// side shuts down.
//
//   Owns:     its connection and buffers. Place and Station stay the caller's and must outlive it.
//   Threads:  one.
//   Blocks:   never.
class PingPong : public Activity {
 public:
  // `round_trips`: of the side that asks; null for the other.
  PingPong(const Place& place, Station& station, const Task& task, Histogram* round_trips)
      : place_(place), station_(station), task_(task), round_trips_(round_trips) {}

  absl::Status Add(esdp::Socket socket) override;
  absl::Status Begin() override;
  Wait NextWait() const override { return {.least = wanted_, .most = wanted_}; }
  absl::Status OnEvents(absl::Span<const esdp::Event> events) override;
  bool ended() const override { return shutting_down_ && wanted_ == 0; }

  Outcome Seen() const override;
  uint64_t copied_bytes() const override { return socket_.Stats().payload_copy_bytes; }
  uint64_t memory_bytes() const override { return pieces_.memory.size(); }

 private:
  bool asks() const { return round_trips_ != nullptr; }
  absl::Status Post(bool send, size_t piece);
  absl::Status Ask();
  absl::Status OnAnswer();
  absl::Status Answer();
  absl::Status ShutDown(size_t left);
  absl::Status CheckContent() const;

  const Place& place_;
  Station& station_;
  const Task task_;
  Histogram* const round_trips_;
  esdp::Socket socket_;
  Pieces pieces_;      // 0: sent; 1 and 2: received in turn
  size_t piece_ = 1;   // that is received into
  size_t wanted_ = 0;  // events, before it goes on
  uint64_t round_ = 0;
  int64_t start_ = 0, asked_ = 0;
  double cpu_before_ = 0;
  bool shutting_down_ = false;
  esdp::Event received_;
  Outcome seen_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_PING_PONG_H_
