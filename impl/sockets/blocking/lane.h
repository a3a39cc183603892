#ifndef ESDP_IMPL_SOCKETS_BLOCKING_LANE_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_LANE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/event.h"
#include "esdp/event_queue.h"
#include "impl/sockets/blocking/signal_rule.h"
#include "impl/sockets/queue/event_queue_state.h"

namespace esdp::sockets {

class ContextState;

// What one direction of a blocking stream waits in: an event queue of its own, and whose turn it
// is. Only who has the turn takes from the queue.
//
//   Owns:     the queue.
//   Threads:  any.
//   Blocks:   Turn and Next, until their deadlines.
//   Units:    events.
//   Errors:   DeadlineExceeded. Turn: ResourceExhausted (kWouldBlock). Next: FailedPrecondition
//             (kShutDown: TellClosed), Cancelled (kSignal), and those of EventQueue::Dequeue.
class Lane {
 public:
  Lane(std::shared_ptr<ContextState> context, uint32_t depth);

  // Until it goes no other thread has the turn. InfinitePast: kWouldBlock where another one has it.
  class Turn {
   public:
    Turn(Lane& lane, absl::Time deadline) : lane_(lane), status_(lane.Enter(deadline)) {}
    ~Turn() {
      if (status_.ok()) lane_.Leave();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    const absl::Status& status() const { return status_; }

   private:
    Lane& lane_;
    const absl::Status status_;
  };

  EventQueue& queue() { return queue_; }
  const std::shared_ptr<QueueState>& queue_state() const;
  // Close was called: who waits for an event is told, or who does next.
  void TellClosed() { queue_.Wake(); }
  std::optional<Event> TryNext();
  absl::StatusOr<Event> Next(absl::Time deadline, OnSignal on_signal);
  // The same without an end, of what others are about to tell: this thread moves nothing for it.
  absl::StatusOr<Event> NextOfOthers();

 private:
  absl::StatusOr<Event> Next(absl::Time deadline, OnSignal on_signal, QueueState::Lead lead);
  absl::Status Enter(absl::Time deadline);
  void Leave();

  const std::shared_ptr<ContextState> context_;
  EventQueue queue_;
  std::mutex mutex_;
  std::condition_variable left_;
  bool taken_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_LANE_H_
