#include "impl/switch/engine/acquaintances.h"

#include <algorithm>
#include <atomic>

#include "impl/switch/monotonic.h"

namespace esdp::switching {
namespace {

std::atomic<Acquaintances*> peers{new Acquaintances};  // never destroyed

}  // namespace

Acquaintances& Peers() { return *peers.load(std::memory_order_relaxed); }
void ForgetPeers() { peers.store(new Acquaintances); }

Acquaintances::Key Acquaintances::KeyOf(const Name& peer) {
  Key key{};
  if (peer.any.sa_family == AF_INET6) {
    std::copy_n(peer.ipv6.sin6_addr.s6_addr, 16, key.first.begin());
    key.second = peer.ipv6.sin6_port;
  } else {
    key.first[10] = key.first[11] = 0xFF;
    std::copy_n(reinterpret_cast<const uint8_t*>(&peer.ipv4.sin_addr), 4, key.first.begin() + 12);
    key.second = peer.ipv4.sin_port;
  }
  return key;
}

Acquaintances::Key Acquaintances::KeyOfHost(const Name& peer) {
  Key key = KeyOf(peer);
  key.second = 0;
  return key;
}

bool Acquaintances::Stays(const Name& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = stays_until_.find(KeyOfHost(peer));
  return found != stays_until_.end() && found->second >= libc::MonotonicMilliseconds();
}

void Acquaintances::LearnThatStays(const Name& peer) {
  constexpr size_t kMost = 4096;
  constexpr int64_t kTenMinutes = 600'000;
  const std::lock_guard lock(mutex_);
  if (stays_until_.size() >= kMost) stays_until_.clear();
  stays_until_[KeyOfHost(peer)] = libc::MonotonicMilliseconds() + kTenMinutes;
}

Learned Acquaintances::Of(const Name& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(KeyOf(peer));
  if (found == known_.end() || found->second.until < libc::MonotonicMilliseconds())
    return Learned::kNothing;
  return found->second.learned;
}

void Acquaintances::Learn(const Name& peer, Learned learned) {
  constexpr size_t kMost = 4096;
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) known_.clear();
  constexpr int64_t kMinute = 60'000;
  const int64_t keep = learned == Learned::kSilent ? kMinute : 24 * 60 * kMinute;
  known_[KeyOf(peer)] = {.learned = learned, .until = libc::MonotonicMilliseconds() + keep};
}

}  // namespace esdp::switching
