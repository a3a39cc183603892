#include "impl/provider/progress/wait_set.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string>
#include <system_error>

namespace esdp::provider {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

timespec ToTimespec(Duration duration) {
  const int64_t nanoseconds = std::max<int64_t>(duration.count(), 0);
  timespec spec{};
  spec.tv_sec = static_cast<time_t>(nanoseconds / kNanosecondsPerSecond);
  spec.tv_nsec = static_cast<decltype(spec.tv_nsec)>(nanoseconds % kNanosecondsPerSecond);
  return spec;
}

bool Watch(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

WaitSet::~WaitSet() {
  for (const int fd : {all_fd_, timer_fd_, wake_fd_, group_fd_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status WaitSet::Open(const std::vector<int>& fabric_fds) {
  bool watched = true;
  if (fabric_fds.size() > 1) {
    group_fd_ = epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : fabric_fds) watched = watched && Watch(group_fd_, fd);
    fabric_fd_ = group_fd_;
  } else if (!fabric_fds.empty()) {
    fabric_fd_ = fabric_fds.front();
  }
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  all_fd_ = epoll_create1(EPOLL_CLOEXEC);
  watched = watched && wake_fd_ >= 0 && timer_fd_ >= 0 && all_fd_ >= 0 &&
            Watch(all_fd_, wake_fd_) && Watch(all_fd_, timer_fd_) &&
            (fabric_fd_ < 0 || Watch(all_fd_, fabric_fd_));
  if (watched) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "no descriptors for waiting (raise the limit on open files): " +
      std::generic_category().message(errno));
}

// `woken_` is true from just before the write to just after the read of it, so that there is never
// more than one.
void WaitSet::Wake() {
  // One that is not drained yet will be, by somebody who then looks for what this call is about.
  if (woken_.load() || woken_.exchange(true)) return;
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof(one));
}

void WaitSet::DrainWake() {
  if (!woken_.load()) return;
  uint64_t count = 0;
  if (read(wake_fd_, &count, sizeof(count)) == sizeof(count)) woken_.store(false);
}

WaitSet::Result WaitSet::Wait(Duration timeout, int also, const sigset_t* signals) {
  // A negative descriptor is passed over.
  pollfd fds[] = {{wake_fd_, POLLIN, 0}, {fabric_fd_, POLLIN, 0}, {also, POLLIN, 0}};
  const timespec limit = ToTimespec(timeout);
  const int ready =
      ppoll(fds, std::size(fds), timeout == kDurationInfinite ? nullptr : &limit, signals);
  if (ready > 0) return Result::kReady;
  return ready < 0 && errno == EINTR ? Result::kSignal : Result::kTimeout;
}

void WaitSet::Arm(Duration from_now) {
  itimerspec setting{};
  if (from_now != kDurationInfinite) setting.it_value = ToTimespec(std::max(from_now, Duration{1}));
  (void)timerfd_settime(timer_fd_, 0, &setting, nullptr);
}

}  // namespace esdp::provider
