#ifndef ESDP_IMPL_FABRIC_QPIP_COMMONS_H_
#define ESDP_IMPL_FABRIC_QPIP_COMMONS_H_

#include <cstdint>

#include "impl/base/clock.h"
#include "impl/fabric/outbox.h"
#include "impl/fabric/qpip/lingering.h"
#include "impl/fabric/qpip/options.h"
#include "impl/fabric/qpip/receiver.h"
#include "impl/fabric/qpip/transmitter.h"
#include "impl/fabric/soft/poller.h"
#include "impl/fabric/soft/posting.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

using soft::kMessageBytesMax;
using soft::kReadsInFlightMax;
using soft::kScatterGatherMax;
using soft::kWorkMax;
// In front of it stand the four bytes of IRD and ORD; together they stay within what one byte of
// length can say, which some peers need.
inline constexpr uint32_t kPrivateDataSentMax = 251;

// What the parts of one fabric share. One thread at a time, like the fabric.
struct FabricShared {
  explicit FabricShared(const QpipOptions& chosen)
      : options(chosen), clock(chosen.clock != nullptr ? chosen.clock : &system_clock) {}

  const QpipOptions options;
  const SystemClock system_clock;
  const Clock* const clock;
  soft::RegionTable regions;
  Outbox outbox;
  Poller poller;
  Lingering lingering{poller};
  uint64_t frames_received = 0;  // since the poller was last asked who is ready
  ReceiveScratch receive_scratch;
  TransmitScratch transmit_scratch;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_COMMONS_H_
