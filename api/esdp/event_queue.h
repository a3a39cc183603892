#ifndef ESDP_EVENT_QUEUE_H_
#define ESDP_EVENT_QUEUE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "esdp/event.h"
#include "esdp/stats.h"

namespace esdp {

namespace sockets {
class QueueState;
class QueueAccess;
}  // namespace sockets

struct WaitArgs {
  size_t min_events = 1;                         // 0: do not wait
  absl::Time deadline = absl::InfiniteFuture();  // on the Context's clock
};

// An EventQueue holds the events of operations that have ended and were not yet dequeued. A slot is
// reserved when an operation is posted, so it can never overflow.
//
//   Owns:     its events; never the memory that an event speaks of. Moves, does not copy.
//   Threads:  any thread may dequeue; each event goes to one of them.
//   Blocks:   Dequeue, until min_events are there or the deadline has passed; TryDequeue never.
//   Units:    depth counts events.
//   Errors:   a full queue refuses operations at post (ResourceExhausted, kQueueFull) and drops
//             nothing.
//
// Destroying a queue that operations name aborts their connections, waits for them (at most a
// second) and tells the log. What was delivered before its Context closed can still be dequeued.
class EventQueue {
 public:
  EventQueue() = default;  // an empty handle: every call answers NotFound
  EventQueue(EventQueue&&) noexcept = default;
  EventQueue& operator=(EventQueue&&) noexcept;
  ~EventQueue();

  // Takes up to out.size() events, oldest first, and returns how many. Waits until there are
  // min_events.
  //   DeadlineExceeded    fewer than min_events were there at the deadline; none was consumed.
  //   Cancelled           Wake (kCancelled) or a signal (kSignal); none was consumed.
  //   InvalidArgument     min_events > out.size() or > depth.
  //   FailedPrecondition  debug builds: fewer operations are outstanding than min_events asks for,
  //   so it could never end;
  //                       also after fork.
  // With manual progress it moves the whole Context; with "sim" it moves virtual time. With a
  // progress thread one of the threads that wait here does its work meanwhile.
  absl::StatusOr<size_t> Dequeue(absl::Span<Event> out, const WaitArgs& wait = {});
  template <size_t kExtent>
  absl::StatusOr<size_t> Dequeue(std::span<Event, kExtent> out, const WaitArgs& wait = {}) {
    return Dequeue(absl::MakeSpan(out.data(), out.size()), wait);
  }
  // The same without waiting; 0 when there is none. It never steps aside: a program that has
  // nothing else to do waits in Dequeue, or it keeps the processor from a peer that shares it.
  absl::StatusOr<size_t> TryDequeue(absl::Span<Event> out);
  template <size_t kExtent>
  absl::StatusOr<size_t> TryDequeue(std::span<Event, kExtent> out) {
    return TryDequeue(absl::MakeSpan(out.data(), out.size()));
  }

  // A descriptor for poll, select and epoll, of the queue's own; do not read or close it.
  // Level-triggered: readable while events are waiting. With manual progress it is readable also
  // when there is work to move; then call TryDequeue, which moves it; there may be no event.
  // Close-on-exec. -1 for an empty handle.
  int fd() const;

  // One waiting Dequeue, or the next one, returns Cancelled.
  void Wake();

  // Changes the depth. FailedPrecondition (kBusy) when more slots are taken or promised than that.
  absl::Status Resize(size_t depth);
  QueueStats Stats() const;

  // Ends the queue; threads inside Dequeue come back with NotFound. FailedPrecondition (kBusy)
  // while operations name it.
  absl::Status Close();

 private:
  friend class sockets::QueueAccess;
  std::shared_ptr<sockets::QueueState> state_;
};

}  // namespace esdp

#endif  // ESDP_EVENT_QUEUE_H_
