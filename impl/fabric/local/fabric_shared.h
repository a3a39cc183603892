#ifndef ESDP_IMPL_FABRIC_LOCAL_FABRIC_SHARED_H_
#define ESDP_IMPL_FABRIC_LOCAL_FABRIC_SHARED_H_

#include <cstdint>
#include <optional>

#include "impl/base/clock.h"
#include "impl/fabric/local/options.h"
#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/outbox.h"
#include "impl/fabric/soft/poller.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::local {

inline constexpr uint32_t kMessageBytesMax = uint32_t{1} << 30;
inline constexpr uint32_t kWorkMax = 4096;
inline constexpr uint32_t kScatterGatherMax = 16;
inline constexpr uint32_t kReadsInFlightMax = 128;

// What the parts of one fabric share. One thread at a time, like the fabric.
struct FabricShared {
  explicit FabricShared(const LocalOptions& chosen)
      : options(chosen), clock(chosen.clock != nullptr ? chosen.clock : &system_clock) {}

  const LocalOptions options;
  const SystemClock system_clock;
  const Clock* const clock;
  soft::RegionTable regions;
  // At the address that peers are told; nothing where the system has no random numbers.
  std::optional<Nonce> nonce;
  bool reads_peers = true;  // until the system has refused it
  Outbox outbox;
  soft::Poller poller;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_FABRIC_SHARED_H_
