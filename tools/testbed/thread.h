#ifndef ESDP_TOOLS_TESTBED_THREAD_H_
#define ESDP_TOOLS_TESTBED_THREAD_H_

#include <coroutine>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <utility>

#include "esdp/event.h"
#include "impl/fabric/sim/testbed/host.h"

namespace esdp::testbed {

// The program of a simulated thread, or a part of it that the program awaits. It runs until its end,
// or until this is destroyed.
class Program {
 public:
  struct promise_type {
    struct Return {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(
          std::coroutine_handle<promise_type> ended) const noexcept {
        return ended.promise().caller ? ended.promise().caller : std::noop_coroutine();
      }
      void await_resume() const noexcept {}
    };

    Program get_return_object() {
      return Program(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    Return final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }

    std::coroutine_handle<> caller;
  };

  Program() = default;
  Program(Program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Program& operator=(Program&& other) noexcept {
    if (handle_) handle_.destroy();
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }
  ~Program() {
    if (handle_) handle_.destroy();
  }

  std::coroutine_handle<> handle() const { return handle_; }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
    handle_.promise().caller = caller;
    return handle_;
  }
  void await_resume() const noexcept {}

 private:
  explicit Program(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// A thread of a simulated host: what its program awaits takes a processor, and time.
//
//   Owns:     its program.
//   Threads:  one.
//   Blocks:   never: the program does, in virtual time.
//   Units:    virtual time.
//   Errors:   –
class Thread {
 public:
  explicit Thread(fabric::sim::testbed::Host& host) : host_(host) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  fabric::sim::testbed::Host& host() { return host_; }

  void Start(Program program) {
    program_ = std::move(program);
    waits_ = program_.handle();
    host_.machine().Acquire(task_, [this] { GoOn(); });
  }

  // Its program is no more; the rest of what it has begun ends by itself.
  void Stop() {
    waits_ = nullptr;
    program_ = {};
  }

  struct Awaitable {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> program) {
      thread->waits_ = program;
      begin();
    }
    void await_resume() const noexcept {}
    Thread* thread;
    std::function<void()> begin;
  };

  // The processor is busy with this.
  Awaitable Spend(const fabric::sim::testbed::Work& work) {
    return {this, [this, work] { host_.machine().Spend(task_, work, [this] { GoOn(); }); }};
  }
  Awaitable Compute(double microseconds) { return Spend({.nanoseconds = microseconds * 1000}); }
  // The protocol does this now; then the processor is busy for as long as that took it.
  Awaitable Run(std::function<void()> protocol, size_t polls = 0) {
    return {this, [this, protocol = std::move(protocol), polls] {
              host_.machine().Spend(task_, host_.Charge(protocol, polls), [this] { GoOn(); });
            }};
  }
  // Until Wake. To leave the processor takes as long as to come back to it.
  Awaitable Block() {
    return {this, [this] {
              state_ = State::kLeaving;
              Switch([this] { Leave(); });
            }};
  }
  void Wake() {
    if (state_ == State::kLeaving) state_ = State::kRuns;
    if (std::exchange(state_, State::kRuns) == State::kRuns) return;
    const auto& parameters = host_.parameters();
    host_.world().Schedule(
        host_.world().Now() + fabric::sim::testbed::Microseconds(parameters.kernel_wake_us),
        [this] { host_.machine().Acquire(task_, [this] { Switch([this] { GoOn(); }); }); });
  }

  // What its operations have come to; whoever puts something in wakes it.
  std::deque<Event> events;

 private:
  enum class State : uint8_t { kRuns, kLeaving, kBlocked };

  void GoOn() {
    if (waits_) std::exchange(waits_, nullptr).resume();
  }
  void Switch(std::function<void()> then) {
    const double switching = host_.parameters().kernel_switch_us * 1000;
    host_.machine().Spend(task_, {.nanoseconds = switching}, std::move(then));
  }
  void Leave() {
    if (state_ == State::kRuns) return GoOn();
    state_ = State::kBlocked;
    host_.machine().Release(task_);
  }

  fabric::sim::testbed::Host& host_;
  fabric::sim::testbed::Task task_;
  Program program_;
  std::coroutine_handle<> waits_;  // for what was begun last
  State state_ = State::kRuns;
};

}  // namespace esdp::testbed

#endif  // ESDP_TOOLS_TESTBED_THREAD_H_
