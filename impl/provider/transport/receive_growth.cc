#include "impl/provider/transport/receive_growth.h"

namespace esdp::provider {

absl::Status ReceiveGrowth::Change(Transport& transport, uint32_t buffers, uint32_t buffer_bytes) {
  const uint64_t before = transport.pool().newest_bytes();
  const uint64_t bytes = transport.pool().BytesFor(buffers, buffer_bytes);
  if (bytes > before && bytes_ - before + bytes > max_) {
    return absl::ResourceExhaustedError("receive_growth_max is reached");
  }
  absl::Status changed = transport.pool().Change(transport.fabric(), buffers, buffer_bytes);
  if (!changed.ok()) return changed;
  Count(transport);
  // They shrink because nothing arrives, so what is posted is not needed soon.
  if (bytes < before) transport.fabric().ReleaseUnusedReceives(transport.queue_pair());
  return absl::OkStatus();
}

// Mappings that were left count as long as they are used where their pages are pinned.
void ReceiveGrowth::Count(Transport& transport) {
  const bool pinned = transport.fabric().limits().pins_memory;
  Set(transport, pinned ? transport.pool().changed_bytes() : transport.pool().newest_bytes());
}

}  // namespace esdp::provider
