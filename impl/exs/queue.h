#ifndef ESDP_IMPL_EXS_QUEUE_H_
#define ESDP_IMPL_EXS_QUEUE_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "impl/exs/operation.h"
#include "sys/exs.h"

namespace esdp::exs {

class Library;

// A Queue is an EventQueue below, whose events it converts, and a ring of converted ones: those of
// operations that the library carries out itself are put there. One thread at a time waits below
// (the leader); others sleep until it has something for them.
//
//   Owns:     its number, its events, and the operations that name it.
//   Threads:  any.
//   Blocks:   Dequeue.
//   Units:    events.
//   Errors:   an errno, 0 for none.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  static absl::StatusOr<std::shared_ptr<Queue>> Open(Library& library, int depth);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  int number() const { return number_; }
  // Whether the number is still that of a descriptor such as this one's.
  bool HoldsNumber() const;
  // It was closed by close(2), and is another's now.
  void LoseNumber() { number_ = -1; }

  // Slots, one for each event; false when there are not so many.
  bool Reserve(int slots);
  void Release(int slots);
  Operation& NewOperation();
  void Recycle(Operation& operation);
  OpArgs Args(Operation& operation);
  // Puts an event into a reserved slot, behind what has arrived below. Announce comes next, without
  // the lock of a socket.
  void Deliver(const exs_event_t& event);
  void Announce();

  // ETIMEDOUT, EINTR: fewer than `need` were there, and none was taken.
  int Dequeue(std::span<exs_event_t> out, size_t need, absl::Time deadline, size_t* taken);
  // Converts what has arrived below, and does not wait.
  void Look();

  int Resize(int depth);
  int SetWait(int wait);
  int depth() const;
  int waiting() const;
  int wait_mode() const;
  // Sent to the process once events wait, if `enabled`.
  int SetSignal(int number, bool enabled);
  void GetSignal(int* number, bool* enabled) const;
  // EBUSY while an operation names it or a thread waits in it.
  int Close();

 private:
  // An event, and how many had arrived below before it.
  struct Delivered {
    exs_event_t event;
    uint64_t behind;
  };
  enum class Waited { kMore, kSignal, kTimeout, kClosed };
  static constexpr size_t kBatch = 64;

  explicit Queue(Library& library);
  bool OpenDescriptors();
  absl::StatusOr<EventQueue> OpenBelow(int depth, int wait);
  bool Take(std::span<exs_event_t> out, size_t need, size_t* taken);
  Waited WaitForMore(size_t need, absl::Time deadline);
  absl::StatusOr<size_t> TakeBelow(absl::Time deadline);
  Waited Lead(absl::Time deadline);
  Waited Follow(uint32_t seen, absl::Time deadline);
  bool BeginLead();
  void EndLead(std::span<const Event> arrived);
  void Push(const exs_event_t& event);
  void PushDelivered();
  void WakeFollowers();
  void ShowReadiness();
  void SendSignal(uint64_t name);

  Library& library_;
  Context& context_;
  EventQueue below_;
  int number_ = -1;  // an epoll set of the two that follow
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int ready_fd_ = -1;  // readable while the ring has events that nobody came for

  mutable std::mutex mutex_;
  std::deque<Operation> operations_;  // never fewer
  Operation* unused_ = nullptr;
  std::vector<exs_event_t> ring_;
  std::deque<Delivered> delivered_;  // not yet in the ring
  uint64_t arrived_ = 0;             // events that were taken from below
  size_t head_ = 0;
  size_t waiting_ = 0;
  size_t used_ = 0;  // slots: reserved, and those of events that wait
  int wait_mode_ = EXS_WAIT_ADAPTIVE;
  int visitors_ = 0;  // threads inside Dequeue
  int followers_ = 0;
  bool leader_ = false;
  bool leader_blocked_ = false;
  bool shown_ = false;  // ready_fd_ is readable
  bool closed_ = false;
  int signal_number_ = 0;
  uint64_t signal_name_ = 0;           // what the helper knows it by; 0: not enabled
  std::atomic<uint32_t> sequence_{0};  // what followers sleep on

  std::array<Event, kBatch> batch_;  // the leader's
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_QUEUE_H_
