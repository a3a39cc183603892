#include "impl/provider/transport/spare_mappings.h"

#include <sys/mman.h>

namespace esdp::provider {

std::byte* MapPrivate(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // One huge page would commit at the first touch what a quiet connection never needs. Advice may
  // be refused.
  (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(memory);
}

// The one that came last, whose pages may still be in the processor's cache.
std::byte* SpareMappings::Map(size_t bytes) {
  for (size_t i = count_; i > 0; --i) {
    if (mappings_[i - 1].bytes != bytes) continue;
    std::byte* const base = mappings_[i - 1].base;
    for (size_t j = i; j < count_; ++j) mappings_[j - 1] = mappings_[j];
    --count_;
    bytes_ -= bytes;
    return base;
  }
  return MapPrivate(bytes);
}

void SpareMappings::Give(std::byte* base, size_t bytes) {
  if (count_ == mappings_max_ || bytes > kBytesMax - bytes_) {
    munmap(base, bytes);
    return;
  }
  mappings_[count_++] = {base, bytes};
  bytes_ += bytes;
}

void SpareMappings::Clear() {
  for (size_t i = 0; i < count_; ++i) munmap(mappings_[i].base, mappings_[i].bytes);
  count_ = bytes_ = 0;
}

}  // namespace esdp::provider
