#ifndef ESDP_TOOLS_ESDP_PERF_STREAM_H_
#define ESDP_TOOLS_ESDP_PERF_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "esdp/context.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {

// Equal pieces of one region, used in turn. Bytes i * piece to (i + 1) * piece of a stream lie in
// piece i modulo their number: a ring of buffers, or a whole file.
struct Pieces {
  std::span<std::byte> memory;
  esdp::Region region;
  std::vector<esdp::Slice> slices;  // the last may be shorter

  static absl::StatusOr<Pieces> Of(std::span<std::byte> memory, const esdp::Region& region,
                                   uint64_t piece);
};

// One connection's share of a run: keeps `depth` operations in flight each way.
//
//   Owns:     its socket. The memory is the caller's, and must outlive the Context.
//   Threads:  one.
//   Blocks:   never.
class Stream {
 public:
  // No pieces: nothing goes that way.
  Stream(const Task& task, uint64_t number, esdp::Socket socket, Pieces sends, Pieces receives)
      : task_(task),
        number_(number),
        socket_(std::move(socket)),
        sends_(std::move(sends)),
        receives_(std::move(receives)),
        shut_down_(sends_.slices.empty()),
        ended_(receives_.slices.empty()) {}

  // Posts what there is room for. A full queue is no error: call again after some events.
  absl::Status PostReceives(esdp::EventQueue& queue);
  absl::Status PostSends(esdp::EventQueue& queue);
  // After this no send begins; the sending direction ends when the last one has.
  void StopSending() { stopped_ = true; }

  absl::Status OnEvent(const esdp::Event& event);

  // Every send has ended and the peer knows; the peer's end of stream is here.
  bool sent_all() const { return shut_down_; }
  bool received_all() const { return ended_; }
  uint64_t bytes_sent() const { return sent_; }
  uint64_t sends() const { return sends_ended_; }
  uint64_t bytes_received() const { return received_; }
  uint64_t bytes_zero_copy() const { return zero_copy_; }
  uint64_t memory_bytes() const { return sends_.memory.size() + receives_.memory.size(); }
  const esdp::Socket& socket() const { return socket_; }

 private:
  absl::Status MakeBatch();
  absl::StatusOr<size_t> PostBatch(esdp::EventQueue& queue);
  absl::Status OnReceived(const esdp::Event& event);
  bool SendingIsOver() const;

  const Task& task_;
  const uint64_t number_;
  esdp::Socket socket_;
  Pieces sends_, receives_;
  std::vector<esdp::Slice> batch_;  // of sends, to be posted

  uint64_t sends_posted_ = 0, sends_ended_ = 0, posted_bytes_ = 0, sent_ = 0;
  uint64_t receives_posted_ = 0, receives_ended_ = 0, received_ = 0, zero_copy_ = 0;
  bool stopped_ = false, shutting_down_ = false, shut_down_ = false;
  bool end_of_stream_ = false, ended_ = false;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_STREAM_H_
