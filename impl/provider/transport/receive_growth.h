#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_RECEIVE_GROWTH_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_RECEIVE_GROWTH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "impl/provider/transport/transport.h"

namespace esdp::provider {

// By how much the receive buffers of a shard's transports have grown together, which is bounded.
//
//   Owns:     the count, and each transport's share of it.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Change: ResourceExhausted at the bound; those of BufferPool::Change.
class ReceiveGrowth {
 public:
  void Bound(uint64_t bytes) { max_ = bytes; }

  // The buffers that are posted from now on are so many of that size.
  absl::Status Change(Transport& transport, uint32_t buffers, uint32_t buffer_bytes);
  // After any of its buffers has been retired.
  void Count(Transport& transport);
  // It has ended, and counts no more.
  void Forget(Transport& transport) { Set(transport, 0); }

 private:
  void Set(Transport& transport, uint64_t growth) {
    bytes_ = bytes_ - transport.growth_ + growth;
    transport.growth_ = growth;
  }

  uint64_t bytes_ = 0;
  uint64_t max_ = ~uint64_t{0};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_RECEIVE_GROWTH_H_
