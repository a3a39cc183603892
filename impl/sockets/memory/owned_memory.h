#ifndef ESDP_IMPL_SOCKETS_MEMORY_OWNED_MEMORY_H_
#define ESDP_IMPL_SOCKETS_MEMORY_OWNED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "impl/base/shared_memory.h"

namespace esdp::sockets {

inline constexpr size_t kPageBytes = 4096;

struct Unmap {
  size_t bytes = 0;
  bool forks = true;   // a child of fork has it too
  bool spare = false;  // SpareMemory may give it to the next stream as it is
  void operator()(std::byte* memory) const;
};
// Memory that the library itself has mapped: zeroed, committed page by page as it is touched.
using OwnedMemory = std::unique_ptr<std::byte, Unmap>;

enum class Pages {
  kSmall,  // a page that is never touched costs nothing
  kLarge,  // huge ones where memory has room for them and the system has any to give: what moves
           // much misses fewer translations, the processor's and the device's
};

// At the beginning of a page. Null when the system has no such memory.
OwnedMemory MapMemory(size_t bytes, Pages pages);
// Whole pages that other processes can map too, while somebody holds a descriptor of them. Errors
// as MakeWritableMemory's. No child of fork has them.
struct SharedMemory {
  Descriptor file;
  OwnedMemory memory;
};
absl::StatusOr<SharedMemory> MapSharedMemory(size_t bytes);
// Addresses of which nobody else has any, and behind which there is no memory.
OwnedMemory ReserveAddresses(size_t bytes);

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_OWNED_MEMORY_H_
