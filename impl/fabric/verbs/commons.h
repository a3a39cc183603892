#ifndef ESDP_IMPL_FABRIC_VERBS_COMMONS_H_
#define ESDP_IMPL_FABRIC_VERBS_COMMONS_H_

#include <memory>
#include <utility>
#include <vector>

#include "impl/base/clock.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/fabric/outbox.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/completion_queues.h"
#include "impl/fabric/verbs/device.h"
#include "impl/fabric/verbs/device_events.h"
#include "impl/fabric/verbs/region_table.h"

namespace esdp::fabric::verbs {

// Where a batch is written down before it is posted; kept, so that posting allocates nothing.
struct Scratch {
  std::vector<ibv_send_wr> sends;
  std::vector<ibv_recv_wr> receives;
  std::vector<ibv_sge> entries;
};

// A queue pair that flushes, and until when the device may take.
struct Flush {
  QueuePairId queue_pair = QueuePairId::kNone;
  Time deadline = kTimeInfinite;
};

// What the parts of one fabric share.
struct FabricShared {
  FabricShared(std::unique_ptr<Device> opened, const Clock* chosen)
      : clock(chosen != nullptr ? chosen : &system_clock),
        device(std::move(opened)),
        completion_queues(*device),
        regions(*device) {}

  const Calls& calls() const { return device->calls(); }

  SystemClock system_clock;
  const Clock* clock;
  std::unique_ptr<Device> device;
  DeviceEvents device_events;
  CompletionQueues completion_queues;
  RegionTable regions;
  Outbox outbox;
  Scratch scratch;
  GrowingRing<Flush> flushes;  // the oldest first; one that is done stays until its time
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_COMMONS_H_
