#include "impl/fabric/soft/poller.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

namespace esdp::fabric::soft {
namespace {

constexpr size_t kReadyMax = 64;

epoll_event Wanted(bool readable, bool writable, uint64_t handle) {
  epoll_event event{};
  event.events = (readable ? EPOLLIN | EPOLLRDHUP : 0u) | (writable ? EPOLLOUT : 0u);
  event.data.u64 = handle;
  return event;
}

absl::Status OutOf(const char* what) {
  return absl::ResourceExhaustedError(std::string("cannot create ") + what + ": " +
                                      std::strerror(errno));
}

}  // namespace

Poller::~Poller() {
  if (epoll_ >= 0) close(epoll_);
}

absl::Status Poller::Open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return OutOf("an epoll descriptor");
  if (!event_.Open()) return OutOf("an event descriptor");
  epoll_event event = Wanted(true, false, kNoHandle);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, event_.fd(), &event) != 0) return OutOf("an epoll entry");
  return absl::OkStatus();
}

WatchId Poller::Watch(int descriptor, Watched kind, uint64_t owner, bool readable, bool writable) {
  const uint64_t handle = watches_.Insert(Entry{.descriptor = descriptor,
                                                .kind = kind,
                                                .owner = owner,
                                                .readable = readable,
                                                .writable = writable});
  if (handle == kNoHandle) return WatchId::kNone;
  epoll_event event = Wanted(readable, writable, handle);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0) return WatchId{handle};
  watches_.Erase(handle);
  return WatchId::kNone;
}

void Poller::Change(WatchId watch, bool readable, bool writable) {
  Entry* entry = Find(watch);
  if (entry == nullptr || (entry->readable == readable && entry->writable == writable)) return;
  entry->readable = readable;
  entry->writable = writable;
  epoll_event event = Wanted(readable, writable, static_cast<uint64_t>(watch));
  epoll_ctl(epoll_, EPOLL_CTL_MOD, entry->descriptor, &event);
}

void Poller::Rename(WatchId watch, Watched kind, uint64_t owner) {
  Entry* entry = Find(watch);
  if (entry == nullptr) return;
  entry->kind = kind;
  entry->owner = owner;
}

void Poller::Forget(WatchId watch) {
  const Entry* entry = Find(watch);
  if (entry == nullptr) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, entry->descriptor, nullptr);
  deadlines_.Cancel(static_cast<uint64_t>(watch));
  watches_.Erase(static_cast<uint64_t>(watch));
}

size_t Poller::Ready(absl::Span<Readiness> ready) {
  std::array<epoll_event, kReadyMax> events;
  const int limit = static_cast<int>(std::min(ready.size(), kReadyMax));
  const int found = epoll_wait(epoll_, events.data(), limit, 0);
  size_t count = 0;
  for (int i = 0; i < found; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const Entry* entry = watches_.Find(event.data.u64);
    if (entry == nullptr) continue;
    ready[count++] =
        Readiness{.kind = entry->kind,
                  .owner = entry->owner,
                  .readable = (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
                  .writable = (event.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0};
  }
  return count;
}

void Poller::SetDeadline(WatchId watch, Time deadline) {
  if (Find(watch) != nullptr) deadlines_.Set(static_cast<uint64_t>(watch), deadline);
}

bool Poller::NextDue(Time now, Readiness& due) {
  const std::optional<TimerQueue::Due> timer = deadlines_.PopDue(now);
  if (!timer) return false;
  const Entry* entry = watches_.Find(timer->key);
  due = entry == nullptr ? Readiness{} : Readiness{.kind = entry->kind, .owner = entry->owner};
  return true;
}

}  // namespace esdp::fabric::soft
