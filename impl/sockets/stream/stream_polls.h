#ifndef ESDP_IMPL_SOCKETS_STREAM_STREAM_POLLS_H_
#define ESDP_IMPL_SOCKETS_STREAM_STREAM_POLLS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "esdp/operation.h"
#include "impl/provider/types.h"
#include "impl/sockets/stream/readiness_listener.h"
#include "impl/sockets/stream/waiting_polls.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// What could be done with a connection now, and who waits for it: Polls, and a listener.
//
//   Owns:     nothing but its lists; operations belong to the Context.
//   Threads:  any. Its lock is never held while others are called.
//   Blocks:   never.
//   Units:    –
//   Errors:   those of Socket::Poll.
class StreamPolls {
 public:
  // Part of `stream`, which outlives it.
  StreamPolls(StreamState& stream, ContextState& context, SocketId id)
      : stream_(stream), context_(context), id_(id), waiting_(context) {}

  // From now on the readiness follows the connection. Without, it knows of an end alone. It may be
  // called again.
  void Watch();
  void SetListener(std::shared_ptr<ReadinessListener> listener);
  void ForgetListener(const ReadinessListener* listener);  // unless another one is there now
  std::shared_ptr<ReadinessListener> Listener() const;
  uint32_t Bits() const;  // of PollMask
  absl::StatusOr<OpId> Poll(uint32_t mask, const OpArgs& args);
  WaitingPolls& waiting() { return waiting_; }

  // From the shard, under its lock.
  void OnReadiness(const provider::Readiness& readiness);
  void OnEnd(bool in_order);
  // A transfer has had its event. Asked at each: nobody listens, as a rule.
  void OnTransferEnded() {
    if (has_listener_.load(std::memory_order_relaxed)) [[unlikely]]
      TellTransferEnded();
  }
  // The listener shows what it has heard of.
  void ShowChange();

 private:
  void TellChange();
  void TellPolls();
  void TellTransferEnded();
  void ShowSoon(ReadinessListener& listener);

  StreamState& stream_;
  ContextState& context_;
  const SocketId id_;
  WaitingPolls waiting_;
  std::atomic<bool> watches_{false};  // the shard tells of the readiness
  std::atomic<bool> has_listener_{false};

  mutable std::mutex mutex_;
  provider::Readiness readiness_;
  bool over_ = false;
  bool failed_ = false;
  std::shared_ptr<ReadinessListener> listener_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_STREAM_POLLS_H_
