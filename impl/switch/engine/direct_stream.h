#ifndef ESDP_IMPL_SWITCH_ENGINE_DIRECT_STREAM_H_
#define ESDP_IMPL_SWITCH_ENGINE_DIRECT_STREAM_H_

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "esdp/stream.h"
#include "impl/switch/engine/host.h"
#include "impl/switch/engine_interface.h"

namespace esdp::switching {

// A DirectStream is a connection whose calls of the program go to a Stream with no relay between: the
// pair under the number shows its readiness, from when on somebody waits for that.
//
//   Owns:     the Stream; the end of the pair that is not the program's.
//   Threads:  any. A call of a handler that has interrupted another one of its thread is EAGAIN.
//   Blocks:   Receive and Send where they are to wait. They are no points of cancellation.
//   Units:    bytes.
//   Errors:   an errno, as recvmsg and sendmsg have it.
class DirectStream {
 public:
  // `place`: of its record. `on_shutdown`: where the end of a Shutdown of its output is told;
  // `on_move`: that of its move to another fabric, for which it asks once it is worth it.
  DirectStream(Context& context, Stream stream, Descriptor hidden, uint32_t place,
               const OpArgs& on_shutdown, const std::optional<OpArgs>& on_move);

  Moved Receive(msghdr& message, int flags, bool waits);
  // What is there before the next urgent byte, or that alone.
  Moved ReceiveToMark(void* to, size_t room, bool& urgent);
  Moved Send(const msghdr& message, int flags, bool waits);
  // The number leads here no longer: who is sent away goes on with what is under it now.
  void Leave() { closed_ = true; }
  // Nobody is to wait to receive. False: nobody does any more; else there may still be one that began
  // only now.
  bool SendReadersAway();
  int Shutdown(int how);
  Moved Unread();
  // 1: the next byte is the urgent one; else 0.
  Moved AtMark();
  void SetUrgentInLine(bool in_line);
  bool peer_ended() const { return stream_.readiness().peer_ended; }
  void SetTimes(absl::Duration receive, absl::Duration send);
  void Show(Descriptor shown);
  // Each arrival is shown; without, only what a wait for a level sees.
  void ShowEdges() { stream_.SetEdges(true); }
  // From now on it is the program's bytes that go through the pair. Where it cannot be used for that,
  // `fresh` is the program's end of a new one. `shown` is to be closed.
  struct Ends {
    Descriptor hidden, shown = {}, fresh = {};
  };
  Ends StopShowing();
  // The number is being closed. A set of epoll goes on with what it was given until the last
  // descriptor of that is closed: it is to be the program's, whose next file may have the number.
  void CloseShown();
  // A descriptor that tells when more can be moved.
  int ReadinessDescriptor();
  void Abort() { stream_.Abort(); }

  Socket& socket() { return stream_.socket(); }
  // What has moved, in its record.
  void TellStatus();
  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }

 private:
  // What it has moved.
  void Count(std::atomic<uint64_t>& direction, size_t bytes);
  absl::Time DeadlineOf(absl::Duration time) const;
  Moved FailedReceive(const absl::Status& status);
  Moved FailedSend(const absl::Status& status, int flags);
  Moved ReceiveUrgent(msghdr& message, int flags);
  absl::StatusOr<size_t> Discard(size_t bytes, ReadArgs args);

  Context& context_;
  Stream stream_;
  const uint32_t place_;
  const OpArgs on_shutdown_;
  const std::optional<OpArgs> on_move_;
  std::atomic<bool> may_move_;
  std::atomic<uint64_t> worth_of_move_{0};  // in bytes
  std::mutex mutex_;
  Descriptor hidden_;  // while nothing is shown
  std::atomic<int64_t> receive_ns_{0}, send_ns_{0};
  std::atomic<uint64_t> sent_{0}, received_{0};
  std::atomic<bool> input_shut_{false}, output_shut_{false};
  std::atomic<bool> failure_told_{false};
  std::atomic<bool> closed_{false};
  std::atomic<int> readers_waiting_{0};
  std::atomic<bool> urgent_in_line_{false};
};

// Those of the process by the ids of their relays, while they go directly.
class DirectStreams {
 public:
  std::shared_ptr<DirectStream> Find(uint64_t id);
  void Add(uint64_t id, std::shared_ptr<DirectStream> stream);
  std::shared_ptr<DirectStream> Take(uint64_t id);  // null where there is none any more
  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<DirectStream>> streams_;
  std::atomic<size_t> count_{0};
};

DirectStreams& Directs();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_DIRECT_STREAM_H_
