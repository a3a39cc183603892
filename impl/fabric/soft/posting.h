#ifndef ESDP_IMPL_FABRIC_SOFT_POSTING_H_
#define ESDP_IMPL_FABRIC_SOFT_POSTING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/soft/work_queue.h"
#include "impl/fabric/types.h"

// What a post comes to before anything is done about it: the refusals of CONTRACT.md, Q5 to Q8, and
// the queues.

namespace esdp::fabric::soft {

// What every fabric in software takes.
inline constexpr uint32_t kMessageBytesMax = uint32_t{1} << 30;
inline constexpr uint32_t kWorkMax = 4096;
inline constexpr uint32_t kScatterGatherMax = 16;
inline constexpr uint32_t kReadsInFlightMax = 128;

absl::Status UnknownWindow();

// `initiator_depth`: reads that were negotiated.
absl::Status CheckSends(absl::Span<const SendWork> batch, QueuePairId queue_pair,
                        uint32_t initiator_depth, const RegionTable& regions);
absl::Status CheckReceives(absl::Span<const ReceiveWork> batch, const RegionTable& regions);

// Of a batch that was checked, and that there is room for.
void PushSends(absl::Span<const SendWork> batch, RegionTable& regions, WorkQueue<SendSlot>& sends);
void PushReceives(absl::Span<const ReceiveWork> batch, RegionTable& regions,
                  WorkQueue<ReceiveSlot>& receives);

// Gives the pages of a receive that nothing has been written to back to the system, until something
// is.
void ReleasePages(const ReceiveSlot& receive, const EntryList& entries);

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_POSTING_H_
