#include "impl/sockets/memory/spare_memory.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace esdp::sockets {

// The one that came last, whose pages may still be in the processor's cache.
OwnedMemory SpareMemory::Take(size_t bytes) {
  {
    const size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(
        mappings_.rbegin(), mappings_.rend(),
        [whole](const OwnedMemory& memory) { return memory.get_deleter().bytes == whole; });
    if (found != mappings_.rend()) {
      OwnedMemory memory = std::move(*found);
      mappings_.erase(std::next(found).base());
      bytes_ -= whole;
      return memory;
    }
  }
  OwnedMemory memory = MapMemory(bytes, Pages::kSmall);
  memory.get_deleter().spare = true;
  return memory;
}

void SpareMemory::Give(OwnedMemory memory) {
  if (memory == nullptr || !memory.get_deleter().spare) return;
  const size_t bytes = memory.get_deleter().bytes;
  const std::lock_guard lock(mutex_);
  if (mappings_.size() >= kMappingsMax || bytes > kBytesMax - bytes_) return;
  try {
    mappings_.push_back(std::move(memory));
    bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    // It is unmapped.
  }
}

}  // namespace esdp::sockets
