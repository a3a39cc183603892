#include "impl/fabric/verbs/arrivals.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "impl/base/status.h"

namespace esdp::fabric::verbs {

absl::Status Arrivals::Open(const std::array<int, kSources>& sources) {
  all_fd_ = epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [this](int fd, uint32_t source) {
    epoll_event event{.events = EPOLLIN, .data = {.u32 = source}};
    return epoll_ctl(all_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
  };
  bool watched = signal_.Open() && watch(signal_.fd(), kSources);
  for (uint32_t i = 0; i < kSources; ++i) watched = watched && watch(sources[i], i);
  if (watched) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    std::string("no descriptor to wait on: ") + strerror(errno));
}

Arrivals::~Arrivals() {
  if (all_fd_ >= 0) close(all_fd_);
}

Arrivals::Ready Arrivals::Look() const {
  std::array<epoll_event, kSources + 1> found{};
  const int count = epoll_wait(all_fd_, found.data(), static_cast<int>(found.size()), 0);
  Ready ready;
  for (int i = 0; i < count; ++i) ready.mask_ |= 1u << found[static_cast<size_t>(i)].data.u32;
  return ready;
}

}  // namespace esdp::fabric::verbs
