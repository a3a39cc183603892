#include "impl/exs/memory_part.h"

#include <cerrno>

namespace esdp::exs {

int MakeMemoryPart(Library& library, const exs_iovec_t& range, Part* part) {
  part->length = range.exs_iov_len;
  if (range.exs_iov_mhandle != EXS_MHANDLE_UNREGISTERED) {
    return library.memory().Find(range.exs_iov_mhandle, range.exs_iov_base, range.exs_iov_len,
                                 &part->region, &part->slice);
  }
  part->base = static_cast<std::byte*>(range.exs_iov_base);
  const auto address = reinterpret_cast<uintptr_t>(part->base);
  return part->length > 0 && (address == 0 || part->length > UINTPTR_MAX - address) ? EFAULT : 0;
}

}  // namespace esdp::exs
