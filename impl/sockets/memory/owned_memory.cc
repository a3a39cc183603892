#include "impl/sockets/memory/owned_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace esdp::sockets {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

std::byte* Map(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// Not every system puts large mappings where huge pages begin.
std::byte* MapAligned(size_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() - kHugePageBytes) return nullptr;
  std::byte* const all = Map(bytes + kHugePageBytes);
  if (all == nullptr) return nullptr;
  const size_t past = reinterpret_cast<uintptr_t>(all) % kHugePageBytes;
  const size_t before = past == 0 ? 0 : kHugePageBytes - past;
  if (before != 0) (void)munmap(all, before);
  (void)munmap(all + before + bytes, kHugePageBytes - before);
  return all + before;
}

}  // namespace

void Unmap::operator()(std::byte* memory) const { (void)munmap(memory, bytes); }

OwnedMemory ReserveAddresses(size_t bytes) {
  void* const begin =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  return OwnedMemory(static_cast<std::byte*>(begin), Unmap{bytes});
}

absl::StatusOr<SharedMemory> MapSharedMemory(size_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() - kPageBytes) {
    return absl::ResourceExhaustedError("more memory than there are addresses");
  }
  const size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  absl::StatusOr<WritableMemory> made = MakeWritableMemory(whole, 0);
  if (!made.ok()) return made.status();
  return SharedMemory{std::move(made->file), OwnedMemory(std::move(made->mapping).Release(),
                                                         Unmap{whole, /*forks=*/false})};
}

OwnedMemory MapMemory(size_t bytes, Pages pages) {
  if (bytes == 0 || bytes > std::numeric_limits<size_t>::max() - kPageBytes) return nullptr;
  const size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const bool huge = pages == Pages::kLarge && whole >= kHugePageBytes;
  std::byte* const memory = huge ? MapAligned(whole) : Map(whole);
  if (memory == nullptr) return nullptr;
  // Advice, which may be refused.
  (void)madvise(memory, whole, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return OwnedMemory(memory, Unmap{whole});
}

}  // namespace esdp::sockets
