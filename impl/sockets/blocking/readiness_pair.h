#ifndef ESDP_IMPL_SOCKETS_BLOCKING_READINESS_PAIR_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_READINESS_PAIR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "impl/provider/progress/socket_pair.h"
#include "impl/sockets/stream/readiness_listener.h"

namespace esdp::sockets {

class QueueState;
class StreamState;

// Shows the readiness of a blocking stream in a descriptor.
//
//   Owns:     the descriptor.
//   Threads:  any.
//   Blocks:   never.
//   Units:    –
//   Errors:   Open: ResourceExhausted (kMemory) where the system has no descriptor.
class ReadinessPair final : public ReadinessListener {
 public:
  // Of a stream that outlives it. An event in the queue of its sends makes room for a write.
  static absl::StatusOr<std::shared_ptr<ReadinessPair>> Open(StreamState& stream,
                                                             std::shared_ptr<QueueState> sends);
  // In a pair that there is already, which it takes over.
  static std::shared_ptr<ReadinessPair> Over(StreamState& stream, std::shared_ptr<QueueState> sends,
                                             provider::SocketPair::Ends ends);
  ReadinessPair(StreamState& stream, std::shared_ptr<QueueState> sends)
      : stream_(stream), sends_(std::move(sends)) {}

  int fd() const { return pair_.fd(); }
  // Arrivals on top of what is readable are shown, too.
  void SetEdges(bool on) { edges_.store(on, std::memory_order_relaxed); }
  // Shows nothing any more.
  provider::SocketPair::Ends Release();
  // What a blocking stream holds beside its connection, from now on.
  struct Own {
    bool readable = false;
    bool urgent = false;
    bool room = true;
    size_t sends = 0;  // under way
  };
  // `sample` is called under the lock, so that the last one counts. `refused`: a write has found no
  // room, and who waits for an edge is to have one.
  template <typename Sample>
  void Update(bool refused, Sample sample) {
    {
      const std::lock_guard lock(mutex_);
      own_ = sample();
      if (refused && !released_) pair_.ShowRoom(false);
      ShowInput(/*arrived=*/false);
    }
    Show();
  }
  bool OnReadinessChange() override { return pending_.fetch_or(kChange) == 0; }
  bool OnTransferEnded() override { return pending_.fetch_or(kRoom) == 0; }
  void Show() override;

 private:
  enum Pending : uint32_t { kRoom = 1, kChange = 2 };

  void ShowInput(bool arrived);
  void ShowRoom();
  void ShowPeerEnd();

  StreamState& stream_;
  const std::shared_ptr<QueueState> sends_;
  std::mutex mutex_;
  provider::SocketPair pair_;
  Own own_;
  bool released_ = false;
  bool end_behind_bytes_ = false;     // the end was shown while there was something to read
  std::atomic<uint32_t> pending_{0};  // of Pending
  std::atomic<bool> edges_{true};
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_READINESS_PAIR_H_
