#ifndef ESDP_IMPL_SOCKETS_BLOCKING_WRITER_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/event.h"
#include "esdp/region.h"
#include "esdp/stream.h"
#include "impl/base/time.h"
#include "impl/sockets/blocking/blocking_options.h"
#include "impl/sockets/blocking/lane.h"
#include "impl/sockets/blocking/send_ring.h"
#include "impl/sockets/blocking/usage.h"
#include "impl/sockets/blocking/write_threshold.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// The writing half of a blocking stream. What is small, and the tail of what the peer does not read
// in time, goes into the send ring, and the call returns. What is large is sent zero-copy, in chunks
// that are registered one after the other while those before them are read.
//
//   Owns:     the ring, and during a call its registrations.
//   Threads:  any: one call at a time, by the lane's turns.
//   Blocks:   until its deadline, and from there on until what the peer is shown is taken back.
//   Units:    bytes.
//   Errors:   those of stream.h.
class BlockingWriter {
 public:
  BlockingWriter(std::shared_ptr<ContextState> context, StreamState& stream, BlockingUsage& usage);

  using Pieces = std::span<const absl::Span<const std::byte>>;
  absl::StatusOr<size_t> Write(Pieces pieces, const WriteArgs& args,
                               const BlockingOptions& options);
  absl::StatusOr<size_t> Write(const Slice& slice, const WriteArgs& args,
                               const BlockingOptions& options);
  absl::Status Shutdown();
  // Close was called: a Write that waits ends.
  void TellClosed() { lane_.TellClosed(); }
  // The last call has left room in the ring; where it has not, the next event here makes some.
  bool has_room() const { return has_room_.load(std::memory_order_relaxed); }
  // How many sends of the ring it has left under way.
  size_t sends() const { return sends_.load(std::memory_order_relaxed); }
  const std::shared_ptr<QueueState>& events() const { return lane_.queue_state(); }

 private:
  // One call.
  struct Call {
    const WriteArgs& args;
    const BlockingOptions& options;
    bool copies = false;  // from here on
    uint64_t zero_copy_from = 0;
    absl::Status interrupted = {};  // already: it must not wait any more
    size_t moved = 0;
    absl::Status status = {};  // why it ends before all has moved
  };
  struct Chunk {
    OpId op = OpId::kNone;
    size_t registered = 0;  // bytes, for this call
    Region region;
  };
  // Chunks under way, oldest first.
  struct Chunks {
    std::vector<Chunk> out;
    size_t posted = 0;   // bytes
    size_t moved = 0;    // of them; in order
    bool stops = false;  // nothing more is posted
    absl::Status status = {};
  };

  // What the threshold learns from.
  struct Trial {
    WriteThreshold::Plan plan;
    size_t bytes = 0;
    Time begun{};
  };

  Trial BeginTrial(size_t pieces, size_t bytes, Call& call);
  void EndTrial(const Trial& trial, Call& call);
  // Until the ring is empty, or patience is over. What it moves is posted.
  void Drain(Call& call);
  bool GoesZeroCopy(size_t bytes, const Call& call) const;
  void WriteZeroCopy(std::span<const std::byte> bytes, Call& call);
  void PostChunk(std::span<const std::byte> bytes, Chunks& chunks, Call& call);
  void AwaitChunk(Chunks& chunks, Call& call, absl::Time& progress);
  void TakeBack(Chunks& chunks, const Call& call, bool returns);
  void Forget(Chunks& chunks);
  void OnChunkEvent(const Event& event, Chunks& chunks);
  void Copy(std::span<const std::byte> bytes, bool more, bool urgent, Call& call);
  absl::Status PostStaged(bool urgent, Call& call);
  void AwaitRoom(Call& call);
  // A send of the ring has ended, or a shutdown.
  void OnEvent(const Event& event) { (void)ring_.OnEnded(event.op); }
  bool HasRoom() const;
  void Collect();

  const std::shared_ptr<ContextState> context_;
  StreamState& stream_;
  BlockingUsage& usage_;
  Lane lane_;
  SendRing ring_;
  WriteThreshold threshold_;
  std::atomic<bool> has_room_{true};
  std::atomic<size_t> sends_{0};
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_WRITER_H_
