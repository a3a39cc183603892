#include "impl/fabric/soft/posting.h"

#include <sys/mman.h>
#include <unistd.h>

#include "impl/base/status.h"

namespace esdp::fabric::soft {
namespace {

absl::Status CheckEntries(const ScatterEntry* entries, uint32_t count, bool writes,
                          const RegionTable& regions) {
  if (count > kScatterGatherMax) {
    return absl::OutOfRangeError("too many scatter entries: see limits()");
  }
  if (count != 0 && entries == nullptr) return absl::InvalidArgumentError("entries is null");
  uint64_t length = 0;
  for (uint32_t i = 0; i < count; ++i) {
    ESDP_RETURN_IF_ERROR(regions.CheckLocal(entries[i], writes));
    length += entries[i].length;
  }
  if (length > kMessageBytesMax) {
    return absl::OutOfRangeError("the message is longer than limits().message_bytes_max");
  }
  return absl::OkStatus();
}

absl::Status CheckSend(const SendWork& work, QueuePairId queue_pair, uint32_t initiator_depth,
                       const RegionTable& regions) {
  switch (work.opcode) {
    case Opcode::kInvalidate:
      if (regions.IsWindow(queue_pair, work.invalidate_key)) return absl::OkStatus();
      return UnknownWindow();
    case Opcode::kRead:
      if (initiator_depth == 0) {
        return absl::FailedPreconditionError("RDMA reads were not negotiated: the depth is 0");
      }
      return CheckEntries(work.entries, work.entry_count, true, regions);
    case Opcode::kSend:
    case Opcode::kWrite:
      return CheckEntries(work.entries, work.entry_count, false, regions);
    case Opcode::kReceive:
      break;
  }
  return absl::InvalidArgumentError("receives are posted with PostReceive");
}

}  // namespace

absl::Status UnknownWindow() {
  return absl::NotFoundError("the key is no live window of this queue pair");
}

absl::Status CheckSends(absl::Span<const SendWork> batch, QueuePairId queue_pair,
                        uint32_t initiator_depth, const RegionTable& regions) {
  for (const SendWork& work : batch) {
    ESDP_RETURN_IF_ERROR(CheckSend(work, queue_pair, initiator_depth, regions));
  }
  return absl::OkStatus();
}

absl::Status CheckReceives(absl::Span<const ReceiveWork> batch, const RegionTable& regions) {
  for (const ReceiveWork& work : batch) {
    ESDP_RETURN_IF_ERROR(CheckEntries(work.entries, work.entry_count, true, regions));
  }
  return absl::OkStatus();
}

void PushSends(absl::Span<const SendWork> batch, RegionTable& regions, WorkQueue<SendSlot>& sends) {
  for (const SendWork& work : batch) {
    SendSlot slot;
    slot.work_id = work.work_id;
    slot.opcode = work.opcode;
    slot.has_invalidate = work.has_invalidate;
    slot.solicited = work.solicited;
    slot.remote = work.remote;
    slot.invalidate_key = work.invalidate_key;
    const uint32_t entries = work.opcode == Opcode::kInvalidate ? 0 : work.entry_count;
    sends.PushBack(slot, work.entries, entries, regions);
  }
}

void PushReceives(absl::Span<const ReceiveWork> batch, RegionTable& regions,
                  WorkQueue<ReceiveSlot>& receives) {
  for (const ReceiveWork& work : batch) {
    ReceiveSlot slot;
    slot.work_id = work.work_id;
    receives.PushBack(slot, work.entries, work.entry_count, regions);
  }
}

void ReleasePages(const ReceiveSlot& receive, const EntryList& entries) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (uint32_t i = 0; i < receive.entry_count; ++i) {
    const ScatterEntry& entry = entries.At(receive.place.entry + i);
    const auto begin = reinterpret_cast<uintptr_t>(entry.address);
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t end = (begin + entry.length) / page * page;
    // A page that is refused keeps its content, which is as good.
    if (first < end) (void)madvise(entry.address + (first - begin), end - first, MADV_DONTNEED);
  }
}

}  // namespace esdp::fabric::soft
