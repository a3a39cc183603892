#ifndef ESDP_IMPL_FABRIC_LOCAL_FABRIC_SHARED_H_
#define ESDP_IMPL_FABRIC_LOCAL_FABRIC_SHARED_H_

#include <cstdint>
#include <optional>

#include "impl/base/clock.h"
#include "impl/fabric/local/left_channels.h"
#include "impl/fabric/local/options.h"
#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/local/shared_bell.h"
#include "impl/fabric/local/shared_regions.h"
#include "impl/fabric/outbox.h"
#include "impl/fabric/soft/poller.h"
#include "impl/fabric/soft/posting.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::local {

using soft::kMessageBytesMax;
using soft::kReadsInFlightMax;
using soft::kScatterGatherMax;
using soft::kWorkMax;

// What the parts of one fabric share. One thread at a time, like the fabric.
struct FabricShared {
  explicit FabricShared(const LocalOptions& chosen)
      : options(chosen), clock(chosen.clock != nullptr ? chosen.clock : &system_clock) {}

  const LocalOptions options;
  const SystemClock system_clock;
  const Clock* const clock;
  soft::RegionTable regions;
  SharedRegions shared_regions;  // of these
  // At the address that peers are told; nothing where the system has no random numbers.
  std::optional<Nonce> nonce;
  bool reads_peers = true;  // until the system has refused it
  uint64_t number = 0;      // by which peers know this fabric again; nobody can guess it
  SharedBells bells;
  // A channel has gone by which we may have been woken for others, too.
  bool look_again = false;
  Outbox outbox;
  soft::Poller poller;
  LeftChannels left_channels;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_FABRIC_SHARED_H_
