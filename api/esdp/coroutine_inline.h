#ifndef ESDP_COROUTINE_INLINE_H_
#define ESDP_COROUTINE_INLINE_H_

#include <array>
#include <bit>
#include <coroutine>
#include <exception>
#include <utility>

#include "absl/types/span.h"
#include "esdp/coroutine.h"

// The bodies of coroutine.h. Nothing in here is for programs.

namespace esdp {
namespace coroutine_internal {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  self = std::coroutine_handle<Promise>::from_promise(*this);
  return Task<T>(*this);
}

template <typename T>
Task<T&> Promise<T&>::get_return_object() {
  self = std::coroutine_handle<Promise>::from_promise(*this);
  return Task<T&>(*this);
}

inline Task<void> Promise<void>::get_return_object() {
  self = std::coroutine_handle<Promise>::from_promise(*this);
  return Task<void>(*this);
}

inline void Destroy(PromiseBase& promise) {
  Waiter* const waiter = promise.Innermost();
  if (waiter == nullptr) return promise.self.destroy();
  Dispatcher::Keep(*waiter, promise.self);
}

}  // namespace coroutine_internal

template <typename T>
struct Task<T>::Awaiter {
  Task task;
  bool await_ready() const noexcept { return task.done(); }
  template <typename Parent>
  void await_suspend(std::coroutine_handle<Parent> parent) noexcept {
    task.promise_->parent = &parent.promise();
    parent.promise().child = task.promise_;
    if (parent.promise().cancelled) task.promise_->Cancel(CancelMode::kIfNotStarted);
    if (std::exchange(task.promise_->started, true)) return;
    task.promise_->runner = parent.promise().runner;
    task.promise_->runner->next = task.promise_->self;
  }
  T await_resume() { return task.promise_->Take(); }
};

template <typename Post>
class Dispatcher::Operation : Waiter {
 public:
  Operation(Dispatcher& dispatcher, Socket& socket, Post post, bool cancellable)
      : post_(std::move(post)) {
    Waiter::dispatcher = &dispatcher;
    Waiter::socket = &socket;
    Waiter::cancellable = cancellable;
  }
  bool await_ready() const noexcept { return false; }
  // False: it was refused, and the coroutine goes on.
  template <typename Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    PromiseBase& sleeper = coroutine.promise();
    if (cancellable && sleeper.cancelled) {
      refusal_ = absl::CancelledError("the task was cancelled before this operation was posted");
      return false;
    }
    const auto cookie = std::bit_cast<uintptr_t>(static_cast<Waiter*>(this));
    const absl::StatusOr<OpId> posted =
        post_(OpArgs{.queue = dispatcher->queue_, .cookie = cookie});
    if (!posted.ok()) {
      refusal_ = posted.status();
      return false;
    }
    Waiter::op = *posted;
    Waiter::promise = &sleeper;
    sleeper.waiter = this;
    ++dispatcher->waiting_;
    return true;
  }
  Outcome await_resume() {
    if (!refusal_.ok()) return {std::move(refusal_), Event{}};
    return {event.ok() ? absl::OkStatus() : event.status(), event};
  }

 private:
  Post post_;
  absl::Status refusal_;
};

inline void Dispatcher::Keep(Waiter& waiter, std::coroutine_handle<> frame) {
  waiter.orphan = frame;
  Waiter*& first = waiter.dispatcher->orphans_;
  waiter.next_orphan = first;
  if (first != nullptr) first->previous_orphan = &waiter;
  first = &waiter;
  (void)waiter.socket->Cancel(waiter.op, CancelMode::kAbortConnection);
}

inline void Dispatcher::Release(Waiter& waiter) {
  if (waiter.previous_orphan != nullptr) {
    waiter.previous_orphan->next_orphan = waiter.next_orphan;
  } else {
    orphans_ = waiter.next_orphan;
  }
  if (waiter.next_orphan != nullptr) waiter.next_orphan->previous_orphan = waiter.previous_orphan;
  waiter.promise->waiter = nullptr;
  waiter.orphan.destroy();
}

inline void Dispatcher::Unlink(PromiseBase& promise) {
  if (promise.previous != nullptr) promise.previous->next = promise.next;
  if (promise.next != nullptr) promise.next->previous = promise.previous;
  if (spawned_ == &promise) spawned_ = promise.next;
}

inline void Dispatcher::Spawn(Task<void> task) {
  PromiseBase& promise = *std::exchange(task.promise_, nullptr);
  promise.ended = &ended_;
  promise.next = spawned_;
  if (spawned_ != nullptr) spawned_->previous = &promise;
  spawned_ = &promise;
  if (!std::exchange(promise.started, true)) promise.Resume();
}

// Not where they end: who resumed them is still on the stack there.
inline void Dispatcher::Reap() {
  while (ended_ != nullptr) {
    PromiseBase& promise = *std::exchange(ended_, ended_->next_ended);
    if (promise.exception && !exception_) exception_ = promise.exception;
    Unlink(promise);
    promise.self.destroy();
  }
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
}

inline absl::StatusOr<size_t> Dispatcher::Resume(const WaitArgs& wait) {
  std::array<Event, 32> events;
  absl::StatusOr<size_t> count = queue_.Dequeue(absl::MakeSpan(events), wait);
  if (!count.ok()) return count;
  for (size_t i = 0; i < *count; ++i) {
    if (!events[i].terminal()) continue;
    Waiter& waiter = *std::bit_cast<Waiter*>(uintptr_t{events[i].cookie});
    --waiting_;
    if (waiter.orphan) {
      Release(waiter);
      continue;
    }
    waiter.event = events[i];
    waiter.promise->waiter = nullptr;
    waiter.promise->Resume();
  }
  return count;
}

inline absl::StatusOr<size_t> Dispatcher::Poll(const WaitArgs& wait) {
  Reap();
  absl::StatusOr<size_t> count = Resume(wait);
  Reap();
  return count;
}

inline absl::Status Dispatcher::Run() {
  while (waiting_ > 0) {
    const absl::StatusOr<size_t> count = Poll();
    if (!count.ok()) return count.status();
  }
  Reap();
  return absl::OkStatus();
}

inline Dispatcher::~Dispatcher() {
  while (spawned_ != nullptr) {
    PromiseBase& promise = *spawned_;
    Unlink(promise);
    coroutine_internal::Destroy(promise);
  }
  while (orphans_ != nullptr) {
    const absl::StatusOr<size_t> count = Resume({});
    if (count.ok() || absl::IsCancelled(count.status())) continue;
    // The queue is gone, and with it everything that could reach the memory.
    while (orphans_ != nullptr) Release(*orphans_);
  }
}

}  // namespace esdp

#endif  // ESDP_COROUTINE_INLINE_H_
