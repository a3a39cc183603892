#ifndef ESDP_IMPL_SOCKETS_MEMORY_LEFT_REGIONS_H_
#define ESDP_IMPL_SOCKETS_MEMORY_LEFT_REGIONS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "impl/provider/types.h"
#include "impl/sockets/memory/owned_memory.h"
#include "impl/sockets/memory/spare_memory.h"

namespace esdp::sockets {

class ContextState;

// Registrations whose last holder has gone. To end one takes the shard lock, which a thread that
// has it cannot take again: it leaves them to the next one that comes.
//
//   Owns:     the registrations until they have ended, and their memory.
//   Threads:  any; Reap not under the shard lock.
//   Blocks:   for the shard lock, where the caller does not have it.
//   Units:    –
//   Errors:   –
class LeftRegions {
 public:
  struct Left {
    std::shared_ptr<provider::MemoryRegion> memory;
    OwnedMemory owned;  // null where it is the application's
  };
  // At once, or by Reap where the caller has the shard lock.
  void Add(ContextState& context, Left left);
  void Reap(ContextState& context);

  // For the buffers of a stream.
  SpareMemory& spare_memory() { return spare_memory_; }

 private:
  void Deregister(ContextState& context, Left& left);

  std::mutex mutex_;
  std::vector<Left> left_;
  std::atomic<bool> any_{false};
  SpareMemory spare_memory_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_MEMORY_LEFT_REGIONS_H_
