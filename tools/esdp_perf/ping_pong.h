#ifndef ESDP_TOOLS_ESDP_PERF_PING_PONG_H_
#define ESDP_TOOLS_ESDP_PERF_PING_PONG_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "tools/esdp_perf/histogram.h"
#include "tools/esdp_perf/outcome.h"
#include "tools/esdp_perf/station.h"
#include "tools/esdp_perf/stream.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

// One message there and back, again and again: one side asks, the other answers until the asking
// side shuts down.
//
//   Owns:     its connection and buffers. The Station stays the caller's and must outlive it.
//   Threads:  one.
//   Blocks:   Ask and Answer, until the end.
class PingPong {
 public:
  PingPong(Station& station, const Task& task) : station_(station), task_(task) {}

  // Takes the connection and posts the first receive.
  absl::Status Add(esdp::Socket socket);
  absl::Status Ask(Histogram& round_trips);
  absl::Status Answer();
  Outcome Seen() const;

 private:
  absl::Status Post(bool send, size_t piece);
  // Waits for `count` events; what the receive among them said is kept.
  absl::Status Await(size_t count);
  absl::Status CheckContent(uint64_t round, size_t piece) const;

  Station& station_;
  const Task task_;
  esdp::Socket socket_;
  Pieces pieces_;  // 0: sent; 1 and 2: received in turn
  esdp::Event received_;
  Outcome seen_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_PING_PONG_H_
