#ifndef ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_STREAM_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_STREAM_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/stream.h"
#include "impl/sockets/blocking/blocking_options.h"
#include "impl/sockets/blocking/reader.h"
#include "impl/sockets/blocking/readiness_pair.h"
#include "impl/sockets/blocking/usage.h"
#include "impl/sockets/blocking/writer.h"

namespace esdp::sockets {

class ContextState;
class SocketState;

// What stands behind a Stream.
//
//   Owns:     its socket and both halves.
//   Threads:  as stream.h says.
//   Blocks:   Connect and Close, until their deadlines.
//   Units:    bytes.
//   Errors:   those of stream.h.
class BlockingStream {
 public:
  static absl::Status CheckOptions(const StreamOptions& options);
  static absl::StatusOr<std::unique_ptr<BlockingStream>> Of(
      const std::shared_ptr<ContextState>& context, Socket socket, const StreamOptions& options);
  BlockingStream(std::shared_ptr<ContextState> context, Socket socket, StreamState& stream);

  ~BlockingStream();
  BlockingStream(const BlockingStream&) = delete;
  BlockingStream& operator=(const BlockingStream&) = delete;

  absl::StatusOr<size_t> Read(BlockingReader::Pieces pieces, const ReadArgs& args);
  absl::StatusOr<size_t> Write(BlockingWriter::Pieces pieces, const WriteArgs& args);
  absl::StatusOr<size_t> Write(const Slice& slice, const WriteArgs& args);
  absl::StatusOr<std::byte> ReadUrgent(bool peek);
  absl::StatusOr<bool> AtUrgentMark();
  absl::Status Shutdown();
  void SetOptions(const StreamOptions& options);
  StreamOptions options() const;

  StreamReadiness readiness();
  absl::StatusOr<int> fd();
  absl::Status ShowIn(int shown, int hidden);
  void SetEdges(bool on);
  std::optional<std::pair<int, int>> StopShowing();
  absl::Status Close(absl::Time deadline);
  void Abort();
  StreamStats Stats() const;
  Socket& socket() { return socket_; }

 private:
  // What a call goes by.
  BlockingOptions OptionsOfCall(absl::Time deadline) const;
  void BeginToShow(const std::shared_ptr<ReadinessPair>& pair);
  // Shows in the descriptor what a call has changed; or that it was not all taken.
  void Refresh(bool refused = false);

  const std::shared_ptr<ContextState> context_;
  // Of the socket, which the application may take away.
  const std::shared_ptr<StreamState> kept_;
  StreamState& stream_;
  BlockingUsage usage_;
  mutable std::mutex mutex_;
  StreamOptions options_;
  // Its queues outlive the socket: what is posted ends with that.
  BlockingReader reader_;
  BlockingWriter writer_;
  Socket socket_;
  bool edges_ = true;                    // this and the next under the lock
  std::shared_ptr<ReadinessPair> pair_;  // from fd() or ShowIn on
  std::atomic<bool> shows_{false};       // it is there
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_STREAM_H_
