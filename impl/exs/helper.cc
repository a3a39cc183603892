#include "impl/exs/helper.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "impl/exs/convert.h"
#include "impl/exs/futex.h"

namespace esdp::exs {
namespace {

constexpr uint32_t kHelperDepth = 1u << 18;
constexpr int kTimeoutMaxMs = 60 * 1000;
constexpr absl::Duration kFlushWithin = absl::Milliseconds(800);
constexpr absl::Duration kFlushWait = absl::Milliseconds(950);

}  // namespace

int Helper::OpenDescriptors() {
  absl::StatusOr<EventQueue> events = context_.CreateQueue({.depth = kHelperDepth});
  if (!events.ok()) return ErrnoOf(events.status());
  events_ = *std::move(events);
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  doorbell_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd_ < 0 || doorbell_fd_ < 0) return EMFILE;
  const std::array<std::pair<int, uint64_t>, 2> own = {
      {{doorbell_fd_, kDoorbell}, {events_.fd(), kEvents}}};
  for (const auto& [fd, name] : own) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = name;
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &wanted);
  }
  return 0;
}

int Helper::Start() {
  if (started_.load(std::memory_order_acquire)) return 0;
  const std::lock_guard lock(mutex_);
  if (started_.load()) return 0;
  if (epoll_fd_ < 0) {
    if (const int error = OpenDescriptors(); error != 0) return error;
  }
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, ThreadMain, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return error;
  pthread_setname_np(thread, "exs");
  pthread_detach(thread);
  started_.store(true, std::memory_order_release);
  return 0;
}

void* Helper::ThreadMain(void* helper) { static_cast<Helper*>(helper)->Loop(); }

void Helper::Ring() const {
  const uint64_t one = 1;
  (void)!write(doorbell_fd_, &one, sizeof(one));
}

// --- what it is given to do ----------------------------------------------------------------------

void Helper::Run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  Ring();
}

void Helper::RunAt(absl::Time when, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    timers_.emplace(when, std::move(task));
  }
  Ring();
}

absl::StatusOr<OpId> Helper::Post(const std::function<absl::StatusOr<OpId>(const OpArgs&)>& post,
                                  Ended ended) {
  const uint64_t name = NewName();
  {
    const std::lock_guard lock(mutex_);
    ended_.emplace(name, std::move(ended));
  }
  absl::StatusOr<OpId> posted = post({.queue = events_, .cookie = name});
  if (!posted.ok()) {
    const std::lock_guard lock(mutex_);
    ended_.erase(name);
  }
  return posted;
}

int Helper::Watch(int fd, uint32_t events, uint64_t name, Watched ready) {
  const std::lock_guard lock(mutex_);
  epoll_event wanted{};
  wanted.events = events | EPOLLONESHOT;
  wanted.data.u64 = name;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &wanted) != 0) return errno;
  watched_[name] = std::move(ready);
  return 0;
}

void Helper::Unwatch(int fd, uint64_t name) {
  const std::lock_guard lock(mutex_);
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(name);
}

// --- its thread ----------------------------------------------------------------------------------

void Helper::Loop() {
  std::array<epoll_event, 64> ready;
  for (;;) {
    const int count = epoll_wait(epoll_fd_, ready.data(), ready.size(), NextTimeout());
    for (const epoll_event& each :
         std::span(ready).first(static_cast<size_t>(std::max(count, 0)))) {
      const uint64_t name = each.data.u64;
      if (name == kDoorbell) {
        uint64_t rung = 0;
        (void)!read(doorbell_fd_, &rung, sizeof(rung));
      } else if (name == kEvents) {
        TakeEvents();
      } else {
        std::unique_lock lock(mutex_);
        const auto found = watched_.find(name);
        if (found == watched_.end()) continue;
        const Watched call = std::move(found->second);
        watched_.erase(found);
        lock.unlock();
        call();
      }
    }
    RunTasks();
    RunTimers();
    if (flushing_.load()) FlushWhenSent();
  }
}

int Helper::NextTimeout() {
  absl::Time next = flush_by_;
  {
    const std::lock_guard lock(mutex_);
    if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
  }
  if (next == absl::InfiniteFuture()) return kTimeoutMaxMs;
  const int64_t ms = absl::ToInt64Milliseconds(next - context_.Now()) + 1;
  return static_cast<int>(std::clamp<int64_t>(ms, 0, kTimeoutMaxMs));
}

void Helper::RunTasks() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

void Helper::RunTimers() {
  for (;;) {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (timers_.empty() || timers_.begin()->first > context_.Now()) return;
      task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
    }
    task();
  }
}

void Helper::TakeEvents() {
  std::array<Event, 64> events;
  const size_t taken = events_.TryDequeue(std::span(events)).value_or(0);
  for (const Event& event : std::span(events).first(taken)) {
    Ended call;
    {
      const std::lock_guard lock(mutex_);
      const auto found = ended_.find(event.cookie);
      if (found == ended_.end()) continue;
      call = std::move(found->second);
      ended_.erase(found);
    }
    call(event);
  }
}

// --- the end of the process ----------------------------------------------------------------------

void Helper::FlushWhenSent() {
  const absl::Time now = context_.Now();
  if (flush_by_ == absl::InfiniteFuture()) flush_by_ = now + kFlushWithin;
  if (sends_.load() > 0 && now < flush_by_) return;
  flushing_.store(false);
  (void)context_.Close(flush_by_);  // what is left then is reset
  flushed_.store(1);
  FutexWakeAll(&flushed_);
}

void Helper::Flush() {
  if (!started_.load(std::memory_order_acquire)) return;
  flushing_.store(true);
  Ring();
  const absl::Time end = context_.After(kFlushWait);
  while (flushed_.load() == 0 && context_.Now() < end) {
    FutexWait(&flushed_, 0, end - context_.Now());
  }
}

}  // namespace esdp::exs
