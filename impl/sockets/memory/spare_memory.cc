#include "impl/sockets/memory/spare_memory.h"

namespace esdp::sockets {

OwnedMemory SpareMemory::Take(size_t bytes) {
  const size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  OwnedMemory memory;
  {
    const std::lock_guard lock(mutex_);
    memory = OwnedMemory(mappings_.Take(whole), Unmap{whole});
  }
  if (memory == nullptr) memory = MapMemory(bytes, Pages::kSmall);
  memory.get_deleter().spare = true;
  return memory;
}

void SpareMemory::Give(OwnedMemory memory) {
  if (memory == nullptr || !memory.get_deleter().spare) return;
  const std::lock_guard lock(mutex_);
  if (mappings_.Keep(memory.get(), memory.get_deleter().bytes)) (void)memory.release();
}

}  // namespace esdp::sockets
