#include "impl/base/spare_mappings.h"

#include <sys/mman.h>

namespace esdp {

// The one that came last, whose pages may still be in the processor's cache.
std::byte* SpareMappings::Take(size_t bytes) {
  for (size_t i = count_; i > 0; --i) {
    if (mappings_[i - 1].bytes != bytes) continue;
    std::byte* const base = mappings_[i - 1].base;
    std::copy(mappings_.begin() + i, mappings_.begin() + count_, mappings_.begin() + i - 1);
    --count_;
    bytes_ -= bytes;
    return base;
  }
  return nullptr;
}

bool SpareMappings::Keep(std::byte* base, size_t bytes) {
  if (count_ == mappings_max_ || bytes > bytes_max_ - bytes_) return false;
  mappings_[count_++] = {base, bytes};
  bytes_ += bytes;
  return true;
}

void SpareMappings::Clear() {
  for (size_t i = 0; i < count_; ++i) munmap(mappings_[i].base, mappings_[i].bytes);
  count_ = bytes_ = 0;
}

}  // namespace esdp
