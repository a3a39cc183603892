#ifndef ESDP_IMPL_SOCKETS_QUEUE_EVENT_QUEUE_STATE_H_
#define ESDP_IMPL_SOCKETS_QUEUE_EVENT_QUEUE_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/event.h"
#include "esdp/event_queue.h"
#include "esdp/options.h"
#include "impl/base/mutex.h"
#include "impl/base/time.h"
#include "impl/provider/progress/cpu_oversubscription.h"
#include "impl/provider/progress/cpu_sharing.h"
#include "impl/sockets/queue/event_wait_word.h"

namespace esdp::sockets {

class ContextState;

absl::Status ClosedQueue();

// What stands behind an EventQueue: a bounded ring of events, the slots promised to operations, and
// descriptors to wait on.
//
//   Owns:     its events and its descriptors.
//   Threads:  any.
//   Blocks:   Wait only.
//   Units:    events.
//   Errors:   Reserve answers false when every slot is taken or promised; Deliver then never lacks
//   one.
class QueueState {
 public:
  static absl::StatusOr<std::shared_ptr<QueueState>> Create(std::shared_ptr<ContextState> context,
                                                            const QueueOptions& options);
  // One that no application sees: it has no descriptor until a thread sleeps in it, and fd() is not
  // asked.
  static std::shared_ptr<QueueState> CreateHidden(std::shared_ptr<ContextState> context,
                                                  const QueueOptions& options);
  ~QueueState();
  QueueState(const QueueState&) = delete;
  QueueState& operator=(const QueueState&) = delete;

  ContextState& context() { return *context_; }

  bool Reserve();
  // As many of `wanted` slots as there are, whose want is nobody's fault and not counted.
  uint32_t ReserveUpTo(uint32_t wanted);
  void Unreserve(uint32_t slots = 1);
  // Puts events into reserved slots.
  void Deliver(const Event& event) { DeliverAll({&event, 1}); }
  void DeliverAll(std::span<const Event> events);

  // All of Dequeue and TryDequeue. kLeaves: others move what is waited for, and go on doing so.
  enum class Lead : uint8_t { kTakes, kLeaves };
  absl::StatusOr<size_t> Dequeue(std::span<Event> out, const WaitArgs& wait,
                                 Lead lead = Lead::kTakes);
  bool HasEvents() const { return events() > 0; }
  size_t events() const { return count_.load(std::memory_order_acquire); }
  absl::StatusOr<size_t> TryDequeue(std::span<Event> out);

  int fd();
  void Wake();
  // Every thread inside Dequeue looks whether its Context has stopped.
  void Interrupt();
  absl::Status Resize(size_t depth);
  QueueStats Stats() const;
  // Refuses all later posts, and sends home who waits; false while slots are promised.
  bool Close();
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // Promised slots.
  uint32_t reserved() const;
  // A multi-shot Accept waits for a slot here: tell the context when one is free.
  void SetStarved();
  // Operations that may deliver more events than the one they reserved.
  void AddOpenEnded(int count) { open_ended_.fetch_add(count, std::memory_order_relaxed); }

 private:
  enum class Slept { kReady, kSignal };
  // Of the shard, which this thread moves; of others; of others, as recv(2) sleeps.
  enum class Sleep { kOnWork, kOnEvents, kOnWord };
  enum class Aside { kNot, kForNobody, kForOthers };  // others have run meanwhile

  QueueState(std::shared_ptr<ContextState> context, const QueueOptions& options);
  void OpenSleepDescriptor();

  size_t Take(std::span<Event> out, size_t at_least);
  size_t TakeAfter(Aside aside, std::span<Event> out, size_t at_least);
  void AfterTaking(size_t taken);
  void FeedStarved();  // there may be a free slot
  absl::StatusOr<size_t> TakeLast(std::span<Event> out, const absl::Status& unusable);
  absl::Status CheckWait(std::span<Event> out, const WaitArgs& wait) const;
  std::optional<absl::StatusOr<size_t>> SleepOrEnd(std::span<Event> out, const WaitArgs& wait,
                                                   Time deadline, Sleep sleep);
  absl::StatusOr<size_t> WaitBesideThread(std::span<Event> out, const WaitArgs& wait, Time deadline,
                                          Lead lead);
  // Nothing instead of a sleep on the word: somebody else has to move the shard then.
  std::optional<absl::StatusOr<size_t>> WaitMoving(std::span<Event> out, const WaitArgs& wait,
                                                   Time deadline, Sleep sleep);
  std::optional<absl::StatusOr<size_t>> WhyOver(std::span<Event> out);
  std::optional<absl::StatusOr<size_t>> SleepAsOne(std::span<Event> out, const WaitArgs& wait,
                                                   bool* hands_over);
  absl::StatusOr<size_t> WaitLooking(std::span<Event> out, const WaitArgs& wait, Time deadline,
                                     Sleep sleep, Duration spin);
  class SpinBudget;
  // kNot: the time to look is over, and who waits better sleeps.
  Aside LookAgain(Time now, SpinBudget& patience);
  Aside StepAside(Time now);
  Aside StepAsideFirst();
  Slept SleepUntil(size_t at_least, Time deadline, Sleep sleep);
  Slept SleepOnWord(size_t at_least);
  bool NothingToWaitFor(size_t at_least) const;
  bool SleepOnDescriptors(Time deadline, Sleep sleep) const;
  bool SleeperHasReason() const;
  // How Deliver and all others tell a sleeper, with the lock, and without.
  struct Call {
    bool descriptor = false;
    bool word = false;
  };
  Call CallSleepers();
  void Make(Call call);
  void WakeSleeper();
  bool TakeWake();
  void SetSignal();
  void ClearSignal();

  const std::shared_ptr<ContextState> context_;
  const QueueOptions options_;

  mutable Mutex mutex_;
  std::vector<Event> ring_;
  size_t head_ = 0;
  uint32_t waiting_ = 0;
  uint32_t reserved_ = 0;
  uint32_t waiting_max_ = 0;
  uint64_t delivered_ = 0;
  uint64_t full_ = 0;
  uint64_t starvations_ = 0;
  bool exposed_ = false;          // the application has asked for the descriptor
  bool signalled_ = false;        // ready_fd_ is readable
  std::vector<size_t> wishes_;    // how many events each sleeper wants
  bool sleep_signalled_ = false;  // sleep_fd_ is readable, or is about to be
  size_t word_sleepers_ = 0;      // of those who wish: they sleep on word_
  uint32_t wakes_ = 0;

  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> count_{0};   // waiting_, to look at without the lock
  std::atomic<uint32_t> word_{0};    // changes when a sleeper has a reason to look
  std::atomic<uint32_t> alerts_{0};  // Wake, to look at without the lock
  std::atomic<bool> starved_{false};
  std::atomic<int> open_ended_{0};
  provider::CpuOversubscription crowding_;
  provider::CpuSharing sharing_;

  int ready_fd_ = -1;  // eventfd: readable while events wait, once somebody looks at it
  int sleep_fd_ = -1;  // eventfd: wakes threads inside Dequeue
  int epoll_fd_ = -1;  // manual progress: ready_fd_ and the shard's
};

// The door of this room into the public handles.
class QueueAccess {
 public:
  static const std::shared_ptr<QueueState>& StateOf(const EventQueue& queue) {
    return queue.state_;
  }
  static EventQueue Make(std::shared_ptr<QueueState> state) {
    EventQueue queue;
    queue.state_ = std::move(state);
    return queue;
  }
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_QUEUE_EVENT_QUEUE_STATE_H_
