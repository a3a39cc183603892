#ifndef ESDP_SAMPLES_AWAITABLE_H_
#define ESDP_SAMPLES_AWAITABLE_H_

#include <array>
#include <bit>
#include <coroutine>
#include <exception>
#include <utility>

#include "absl/types/span.h"
#include "esdp/context.h"

// Coroutines over an event queue: `Event event = co_await loop.Do([&](OpArgs args) { return
// socket.Recv(slice, flags, args); })`. The coroutine sleeps until the operation's terminal event,
// so what it has on its frame outlives every operation that it waits for.

namespace samples {

// A coroutine that runs by itself, from its call to its end, and is awaited by nobody.
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// Resumes coroutines when their operations end. Of one thread.
class Loop {
 public:
  explicit Loop(esdp::EventQueue& queue) : queue_(queue) {}

  // Posts and waits. A post that is refused gives at once an event with its status.
  template <typename Post>
  auto Do(Post post) {
    return Operation<Post>(*this, std::move(post));
  }

  // Until no coroutine waits any more.
  absl::Status Run() {
    std::array<esdp::Event, 32> events;
    while (waiting_ > 0) {
      const auto count = queue_.Dequeue(absl::MakeSpan(events));
      if (!count.ok()) return count.status();
      for (size_t i = 0; i < *count; ++i) {
        if (!events[i].terminal()) continue;
        auto* const waiter = std::bit_cast<Waiter*>(uintptr_t{events[i].cookie});
        --waiting_;
        waiter->event = events[i];
        waiter->coroutine.resume();
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Waiter {
    esdp::Event event;
    std::coroutine_handle<> coroutine;
  };

  template <typename Post>
  class Operation : Waiter {
   public:
    Operation(Loop& loop, Post post) : loop_(loop), post_(std::move(post)) {}
    bool await_ready() const noexcept { return false; }
    // False: it was refused, and the coroutine goes on.
    bool await_suspend(std::coroutine_handle<> coroutine) {
      Waiter::coroutine = coroutine;
      const auto cookie = std::bit_cast<uintptr_t>(static_cast<Waiter*>(this));
      const absl::StatusOr<esdp::OpId> op = post_(esdp::OpArgs{loop_.queue_, cookie});
      if (op.ok()) return ++loop_.waiting_, true;
      const esdp::ErrorDetail detail = esdp::DetailOf(op.status());
      Waiter::event.code = op.status().code();
      Waiter::event.kind = detail.kind;
      Waiter::event.sys_errno = detail.sys_errno;
      return false;
    }
    esdp::Event await_resume() const { return Waiter::event; }

   private:
    Loop& loop_;
    Post post_;
  };

  esdp::EventQueue& queue_;
  int waiting_ = 0;  // coroutines
};

}  // namespace samples

#endif  // ESDP_SAMPLES_AWAITABLE_H_
