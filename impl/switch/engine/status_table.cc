#include "impl/switch/engine/status_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

namespace esdp::switching {
namespace {

constexpr size_t kBytes = sizeof(StatusHeader) + kStatusRecords * sizeof(StatusRecord);

uint16_t FillAddress(const Name& name, socklen_t bytes, std::array<uint8_t, 16>& to) {
  if (bytes >= sizeof(sockaddr_in6) && name.any.sa_family == AF_INET6) {
    std::copy_n(name.ipv6.sin6_addr.s6_addr, 16, to.begin());
    return ntohs(name.ipv6.sin6_port);
  }
  if (bytes < sizeof(sockaddr_in) || name.any.sa_family != AF_INET) return 0;
  to[10] = to[11] = 0xFF;
  std::copy_n(reinterpret_cast<const uint8_t*>(&name.ipv4.sin_addr), 4, to.begin() + 12);
  return ntohs(name.ipv4.sin_port);
}

}  // namespace

bool StatusTable::Open() {
  if (header_ != nullptr) return true;
  Descriptor file(memfd_create(kStatusName, MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.get(), kBytes) != 0) return false;
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (room == MAP_FAILED) return false;
  file_ = std::move(file);
  header_ = new (room) StatusHeader;
  records_ = reinterpret_cast<StatusRecord*>(header_ + 1);
  return true;
}

uint32_t StatusTable::Add(const ConnectionNames& names, StatusRecord record) {
  record.local_port = FillAddress(names.local, names.local_bytes, record.local);
  record.peer_port = FillAddress(names.peer, names.peer_bytes, record.peer);
  const std::lock_guard lock(mutex_);
  if (!Open()) return 0;
  const auto place = static_cast<uint32_t>(header_->made++ % kStatusRecords);
  StatusRecord& to = records_[place];
  Begin(to);
  record.generation = to.generation;
  to = record;
  End(to);
  return place;
}

void StatusTable::Begin(StatusRecord& record) {
  std::atomic_ref(record.generation).fetch_or(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
}

void StatusTable::End(StatusRecord& record) {
  std::atomic_ref(record.generation).fetch_add(1, std::memory_order_release);
}

}  // namespace esdp::switching
