#ifndef ESDP_TOOLS_ESDP_COPY_CHANNEL_H_
#define ESDP_TOOLS_ESDP_COPY_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "tools/esdp_copy/wire.h"

namespace esdp_copy {

// A file goes in spans, one operation each: so the bar moves, and what has come is known.
inline constexpr uint64_t kSpanBytes = uint64_t{32} << 20;
inline constexpr int kSpansOut = 2;
// How long a peer that is there may say nothing: it may have to read what an earlier run has left.
inline constexpr absl::Duration kPatience = absl::Minutes(10);
inline constexpr absl::Duration kClosePatience = absl::Seconds(5);

// What both sides work with: registered memory for one record each way.
class Channel {
 public:
  static absl::StatusOr<Channel> Open(const std::string& fabric);

  esdp::Context& context() { return context_; }
  esdp::EventQueue& queue() { return queue_; }
  Record out() const { return Record(base_ + kOut, kRecordBytes); }
  Record in() const { return Record(base_ + kIn, kRecordBytes); }
  esdp::Slice OutSlice(uint64_t length = kRecordBytes) const;
  esdp::Slice InSlice(uint64_t length = kRecordBytes) const;

  // The next event but those of kAccept, which are kept for NextArrived; an error when none comes
  // for kPatience. The event may tell of an error too.
  absl::StatusOr<esdp::Event> Next();
  // The same, of those that are there: nothing where there is none.
  std::optional<esdp::Event> TryNext();
  // Waits for the event of one operation, and gives its status. Others are dropped.
  absl::Status Await(const absl::StatusOr<esdp::OpId>& op);
  // The next connection that was accepted; waits as long as it takes.
  absl::StatusOr<esdp::SocketId> NextArrived();
  // All that the socket has posted has ended when this returns, so that its buffers are free.
  void Close(esdp::Socket& socket, esdp::CloseMode mode);

 private:
  absl::StatusOr<esdp::Event> Take(absl::Time deadline);
  bool KeptArrived(const esdp::Event& event);

  static constexpr size_t kOut = 0;
  static constexpr size_t kIn = kOut + kRecordBytes;

  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Region region_;
  std::byte* base_ = nullptr;
  std::deque<esdp::SocketId> arrived_;
};

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_CHANNEL_H_
