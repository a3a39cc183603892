#ifndef ESDP_COROUTINE_H_
#define ESDP_COROUTINE_H_

#include <coroutine>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/coroutine_internal.h"
#include "esdp/event_queue.h"
#include "esdp/socket.h"

// Coroutines over an event queue: `Outcome got = co_await dispatcher.Do(socket, [&](OpArgs args) {
// return socket.Recv(slice, RecvFlags::kNone, args); })`.

namespace esdp {

// What became of an operation.
struct Outcome {
  absl::Status status;  // of the post that was refused, or of the event, with its text
  Event event;          // the terminal one; of a refusal none: its type is kNone
  bool ok() const { return status.ok(); }
};

// A Task is a coroutine: `Task<int> F()` gives an int by `co_return`, `Task<int&>` a reference,
// which must stay good as long as it is used, `Task<void>` nothing. It begins when it is awaited
// (`co_await F()`, `co_await std::move(task)`), started or spawned.
//
//   Owns:     the coroutine. Moves, does not copy. Destroyed before its end, it asks for
//             Cancel(kAbortConnection), is not resumed any more, and what lies on its frame, such
//             as buffers and sockets, stays until the terminal event of its operation has been
//             dequeued. What it refers to elsewhere has to stay as long.
//   Threads:  the one of its Dispatcher.
//   Blocks:   never.
//   Units:    -
//   Errors:   an exception that leaves the coroutine goes to who awaits it, or leaves Get.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = coroutine_internal::Promise<T>;

  Task() = default;
  explicit Task(promise_type& promise) : promise_(&promise) {}
  Task(Task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(promise_, other.promise_);
    return *this;
  }
  ~Task() {
    if (promise_ != nullptr) coroutine_internal::Destroy(*promise_);
  }

  // Runs it to where it first waits. Nothing if it was started before.
  void Start() {
    if (!std::exchange(promise_->started, true)) promise_->Resume();
  }
  bool done() const { return promise_ != nullptr && promise_->self.done(); }
  // What it returned, once; it must be done.
  T Get() { return promise_->Take(); }
  // Asks the operation that it waits for to end, also one that a task it awaits waits for. Each
  // Dispatcher::Do that follows in these tasks ends as cancelled without being posted.
  void Cancel(CancelMode mode = CancelMode::kIfNotStarted) { promise_->Cancel(mode); }

  auto operator co_await() && { return Awaiter{std::move(*this)}; }

 private:
  friend class Dispatcher;

  struct Awaiter;

  promise_type* promise_ = nullptr;
};

// A Dispatcher posts for coroutines and resumes each with its terminal event. The cookies of the
// queue are its own: nothing else may post with that queue, and Accept takes one connection at a
// time. It allocates nothing.
//
//   Owns:     the tasks spawned. Neither moves nor copies; the queue, and the sockets named, must
//             outlive it. Its destructor destroys what was spawned and waits for the terminal
//             events of destroyed tasks; other tasks must be destroyed before it.
//   Threads:  one.
//   Blocks:   Poll and Run, as EventQueue::Dequeue; the destructor.
//   Units:    -
//   Errors:   those of EventQueue::Dequeue. An exception that leaves a spawned task leaves the
//             Poll or Run that resumed it, after all else has been resumed; of several the first.
class Dispatcher {
 public:
  explicit Dispatcher(EventQueue& queue) : queue_(queue) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  // To be awaited in a Task: posts, sleeps until the terminal event, gives an Outcome. `post` takes
  // OpArgs, of which it may set all but queue and cookie, and returns what the call of `socket`
  // returned.
  template <typename Post>
  auto Do(Socket& socket, Post post) {
    return Operation<Post>(*this, socket, std::move(post), true);
  }
  // The same for what a task does at its end, such as Close: Task::Cancel does not reach it.
  template <typename Post>
  auto Finish(Socket& socket, Post post) {
    return Operation<Post>(*this, socket, std::move(post), false);
  }

  // Starts a task that nobody awaits, and owns it until its end.
  void Spawn(Task<void> task);
  // Waits for events and resumes who waited for them; returns how many events there were.
  absl::StatusOr<size_t> Poll(const WaitArgs& wait = {});
  // Until no coroutine waits for an operation any more.
  absl::Status Run();
  // How many operations have not ended.
  int waiting() const { return waiting_; }

 private:
  using Waiter = coroutine_internal::Waiter;
  using PromiseBase = coroutine_internal::PromiseBase;
  friend void coroutine_internal::Destroy(PromiseBase& promise);

  template <typename Post>
  class Operation;

  absl::StatusOr<size_t> Resume(const WaitArgs& wait);
  static void Keep(Waiter& waiter, std::coroutine_handle<> frame);
  void Release(Waiter& waiter);
  void Reap();
  void Unlink(PromiseBase& promise);

  EventQueue& queue_;
  int waiting_ = 0;                 // operations
  PromiseBase* spawned_ = nullptr;  // the newest first
  PromiseBase* ended_ = nullptr;    // of the spawned, those that can be destroyed
  Waiter* orphans_ = nullptr;       // operations whose tasks were destroyed
  std::exception_ptr exception_;    // of a spawned task
};

}  // namespace esdp

#include "esdp/coroutine_inline.h"

#endif  // ESDP_COROUTINE_H_
