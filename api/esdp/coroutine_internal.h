#ifndef ESDP_COROUTINE_INTERNAL_H_
#define ESDP_COROUTINE_INTERNAL_H_

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

#include "esdp/event.h"
#include "esdp/socket.h"

// What coroutine.h is made of. Nothing in here is for programs.

namespace esdp {

template <typename T>
class Task;
class Dispatcher;

namespace coroutine_internal {

struct PromiseBase;

// Runs coroutines one after the other where one hands over to another, when it awaits or ends. The
// stack stays as deep as it is, however many there are: compilers turn a hand-over into a jump only
// when they optimise.
struct Runner {
  std::coroutine_handle<> next;
  void Run() {
    while (next) std::exchange(next, nullptr).resume();
  }
};

// An operation that a coroutine sleeps for; it lies on the coroutine's frame, and its address is
// the operation's cookie.
struct Waiter {
  Event event;
  Socket* socket = nullptr;
  OpId op = OpId::kNone;
  bool cancellable = true;
  PromiseBase* promise = nullptr;  // of the coroutine that sleeps
  // Set when its task was destroyed: the outermost frame, which goes with the terminal event.
  std::coroutine_handle<> orphan;
  Waiter* previous_orphan = nullptr;
  Waiter* next_orphan = nullptr;
  Dispatcher* dispatcher = nullptr;
};

// What all coroutines of this library have, whatever they return.
struct PromiseBase {
  std::coroutine_handle<> self;
  PromiseBase* parent = nullptr;  // awaits this one
  PromiseBase* child = nullptr;   // is awaited by this one
  Waiter* waiter = nullptr;       // the operation that this one sleeps for
  Runner* runner = nullptr;       // while it runs
  bool started = false;
  bool cancelled = false;
  // Of those that a Dispatcher owns.
  PromiseBase* previous = nullptr;
  PromiseBase* next = nullptr;
  PromiseBase** ended = nullptr;  // the list of those that have ended
  PromiseBase* next_ended = nullptr;
  std::exception_ptr exception;

  // The operation that the innermost coroutine sleeps for, if any.
  Waiter* Innermost() {
    PromiseBase* at = this;
    while (at->child != nullptr) at = at->child;
    return at->waiter;
  }
  // Until it, and whom it hands over to, sleeps or has ended.
  void Resume() {
    Runner one{self};
    runner = &one;
    one.Run();
  }
  void Cancel(CancelMode mode) {
    for (PromiseBase* at = this; at != nullptr; at = at->child) at->cancelled = true;
    Waiter* const waiter = Innermost();
    // NotFound: it has ended, and its event is on its way.
    if (waiter != nullptr && waiter->cancellable) (void)waiter->socket->Cancel(waiter->op, mode);
  }

  std::suspend_always initial_suspend() noexcept { return {}; }
  void unhandled_exception() { exception = std::current_exception(); }

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      PromiseBase& promise = ended.promise();
      if (promise.ended != nullptr) {
        promise.next_ended = std::exchange(*promise.ended, &promise);
      }
      if (promise.parent == nullptr) return;
      promise.parent->child = nullptr;
      promise.parent->runner = promise.runner;
      promise.runner->next = promise.parent->self;
    }
    void await_resume() const noexcept {}
  };
  Final final_suspend() noexcept { return {}; }
};

template <typename T>
struct Promise : PromiseBase {
  static_assert(
      !std::is_reference_v<T>,
      "esdp::Task<T>: T is a value, an lvalue reference or void, not an rvalue reference");
  std::variant<std::monostate, T> value;

  Task<T> get_return_object();
  template <typename U>
  void return_value(U&& from) {
    value.template emplace<1>(std::forward<U>(from));
  }
  T Take() {
    if (exception) std::rethrow_exception(std::exchange(exception, nullptr));
    return std::get<1>(std::move(value));
  }
};

template <typename T>
struct Promise<T&> : PromiseBase {
  T* referent = nullptr;

  Task<T&> get_return_object();
  void return_value(T& from) { referent = &from; }
  void return_value(T&& from) = delete;  // it would be gone
  T& Take() {
    if (exception) std::rethrow_exception(std::exchange(exception, nullptr));
    return *referent;
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void Take() {
    if (exception) std::rethrow_exception(std::exchange(exception, nullptr));
  }
};

// Destroys a coroutine, at once or with the terminal event that it sleeps for.
void Destroy(PromiseBase& promise);

}  // namespace coroutine_internal
}  // namespace esdp

#endif  // ESDP_COROUTINE_INTERNAL_H_
