#ifndef ESDP_IMPL_SOCKETS_BLOCKING_READER_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/event.h"
#include "esdp/region.h"
#include "esdp/stream.h"
#include "impl/sockets/blocking/blocking_options.h"
#include "impl/sockets/blocking/lane.h"
#include "impl/sockets/blocking/urgent_mark.h"
#include "impl/sockets/blocking/usage.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// The reading half of a blocking stream. What comes in messages is copied into the caller's memory.
// A receive ends where the peer shows memory: what is shown is then read into the caller's, which is
// registered for that, or, for a small read, ahead into private memory. No receive is ever shown to
// the peer, so that one that waits ends at once when it is to.
//
//   Owns:     the memory to read ahead, from its first use on; during a call its registration.
//   Threads:  any: one call at a time, by the lane's turns. `ahead` is asked without.
//   Blocks:   until its deadline, and then for a read that is under way.
//   Units:    bytes.
//   Errors:   those of stream.h.
class BlockingReader {
 public:
  BlockingReader(std::shared_ptr<ContextState> context, StreamState& stream, BlockingUsage& usage);

  using Pieces = std::span<const absl::Span<std::byte>>;
  absl::StatusOr<size_t> Read(Pieces pieces, const ReadArgs& args, const BlockingOptions& options);
  // Bytes that were read ahead, and that the next read may have.
  size_t ahead() const { return ahead_.load(std::memory_order_relaxed); }

  // --- where urgent bytes are not among the others ---
  // Reads ahead up to what is announced, as far as it is here and there is room for it.
  void LookForUrgent(const BlockingOptions& options);
  absl::StatusOr<std::byte> ReadUrgent(bool peek, const BlockingOptions& options);
  // The next byte is the urgent one.
  bool at_mark() const { return at_mark_.load(std::memory_order_relaxed); }
  // What is behind `ahead` is behind an urgent byte, too.
  bool mark_ahead() const { return mark_ahead_.load(std::memory_order_relaxed); }
  bool shows_urgent() const { return urgent_.shows(); }

 private:
  // One call.
  struct Call {
    const ReadArgs& args;
    const BlockingOptions& options;
    size_t min = 0;
    size_t moved = 0;
    absl::Status status = {};  // why it ends before `min` have moved
    bool dry = false;          // the last receive was not filled: nothing more is here
    bool eof = false;
    bool urgent = false;  // the last receive has ended with an urgent byte, to be kept
    bool ended = false;   // at the end, or what there is now has been taken
    bool done() const { return !status.ok() || ended; }
  };

  void Fill(std::span<std::byte> memory, Call& call);
  void Receive(std::span<std::byte> memory, Call& call);
  // Into the caller's memory, which is registered. False: that cannot be.
  bool ReceiveDirect(std::span<std::byte> memory, Call& call);
  void ReadAhead(Call& call, size_t wanted);
  void Peek(Pieces pieces, Call& call);
  absl::Status OpenAhead();
  size_t TakeAhead(std::span<std::byte> memory, bool keep, size_t offset = 0);
  void MakeRoomAhead();
  // An urgent byte has come as the last of these: how many are before it.
  size_t KeepUrgent(std::span<const std::byte> came, Call& call);
  void SetMark(size_t at);
  // At the mark a read ends, or goes past it where it has nothing yet.
  void PassMark(Call& call);
  bool IsAtMark() const { return mark_ == begin_ && begin_ < end_; }
  void ForgetUrgent(const Call& call);
  // The end of the operation: within the deadline, or it is cancelled. Bytes that came are told.
  size_t Await(const absl::StatusOr<OpId>& op, Call& call);
  void SetAhead(size_t begin, size_t end);

  const std::shared_ptr<ContextState> context_;
  StreamState& stream_;
  BlockingUsage& usage_;
  Lane lane_;

  Region region_;
  std::span<std::byte> memory_;  // to read ahead
  size_t begin_ = 0, end_ = 0;   // what is there
  static constexpr size_t kNoMark = SIZE_MAX;
  size_t mark_ = kNoMark;  // where in it the last urgent byte is
  bool apart_ = false;     // and no read has that
  UrgentMark urgent_;
  std::atomic<bool> at_mark_{false}, mark_ahead_{false};
  std::atomic<size_t> ahead_{0};
  bool shown_ = false;  // the last receive has ended at memory that the peer shows
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_READER_H_
