#include "impl/sockets/context/untaken_sockets.h"

#include <utility>

#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {

void UntakenSockets::Add(const std::shared_ptr<SocketState>& socket, SocketId listener) {
  const std::lock_guard lock(mutex_);
  sockets_.emplace(socket->id(), Untaken{socket, listener});
}

std::shared_ptr<SocketState> UntakenSockets::Take(SocketId socket) {
  const std::lock_guard lock(mutex_);
  const auto found = sockets_.find(socket);
  if (found == sockets_.end()) return nullptr;
  std::shared_ptr<SocketState> taken = std::move(found->second.socket);
  sockets_.erase(found);
  return taken;
}

UntakenSockets::Sockets UntakenSockets::TakeAllOf(SocketId listener) {
  Sockets taken;
  const std::lock_guard lock(mutex_);
  for (auto each = sockets_.begin(); each != sockets_.end();) {
    const auto here = each++;
    if (here->second.listener == listener) taken.insert(sockets_.extract(here));
  }
  return taken;
}

std::optional<Time> UntakenSockets::Seen(SocketId socket, Time now) {
  const std::lock_guard lock(mutex_);
  if (within_ == kDurationInfinite || !sockets_.contains(socket)) return std::nullopt;
  DropTaken();
  seen_.push_back({socket, AddSaturating(now, within_)});
  if (std::exchange(is_awaited_, true)) return std::nullopt;
  return seen_.front().overdue_at;
}

// Most are taken at once: what is left of them is not to pile up until its time.
void UntakenSockets::DropTaken() {
  constexpr size_t kFew = 64;
  if (seen_.size() < 2 * sockets_.size() + kFew) return;
  std::erase_if(seen_, [&](const Sighting& one) { return !sockets_.contains(one.socket); });
}

std::vector<std::shared_ptr<SocketState>> UntakenSockets::TakeOverdue(Time now,
                                                                      std::optional<Time>* next) {
  std::vector<std::shared_ptr<SocketState>> overdue;
  const std::lock_guard lock(mutex_);
  for (; !seen_.empty(); seen_.pop_front()) {
    const auto found = sockets_.find(seen_.front().socket);
    if (found == sockets_.end()) continue;
    if (seen_.front().overdue_at > now) break;
    overdue.push_back(std::move(found->second.socket));
    sockets_.erase(found);
  }
  is_awaited_ = !seen_.empty();
  *next = is_awaited_ ? std::optional(seen_.front().overdue_at) : std::nullopt;
  return overdue;
}

void UntakenSockets::Clear() {
  Sockets dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  dropped.swap(sockets_);
  seen_.clear();
}

}  // namespace esdp::sockets
