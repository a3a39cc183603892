#include <algorithm>
#include <cerrno>
#include <cstring>

#include "impl/base/status.h"
#include "impl/fabric/verbs/queue_pair.h"
#include "impl/fabric/verbs/work_number.h"

// What is posted: checked as the port promises, then handed to the device as one list.

namespace esdp::fabric::verbs {
namespace {

// Work that may pass without a completion of its own.
constexpr uint64_t kSilentMost = 16;

// The kernel's siw (6.1) answers a READ of up to so many bytes from a copy that goes wrong where
// they cross a page: bytes of the wrong places come.
constexpr uint64_t kAnsweredFromACopy = 32;
constexpr uint64_t kPageBytes = 4096;

ibv_wr_opcode VerbsOpcode(const SendWork& work) {
  switch (work.opcode) {
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
    case Opcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Opcode::kInvalidate:
      return IBV_WR_LOCAL_INV;
    default:
      return work.has_invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
  }
}

uint64_t LengthOf(const ScatterEntry* entries, uint32_t count) {
  uint64_t length = 0;
  for (uint32_t i = 0; i < count; ++i) length += entries[i].length;
  return length;
}

// libsiw says -1, and why in errno.
absl::Status Refused(const char* what, int result) {
  const int error = result < 0 ? errno : result;
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    std::string("the device refuses ") + what + ": " + strerror(error));
}

}  // namespace

absl::Status QueuePair::CheckEntries(const ScatterEntry* entries, uint32_t count,
                                     uint32_t count_max, bool writes) const {
  if (count > count_max) return absl::OutOfRangeError("more entries than the fabric takes");
  for (uint32_t i = 0; i < count; ++i) {
    ESDP_RETURN_IF_ERROR(commons_.regions.CheckLocal(entries[i], writes));
  }
  return absl::OkStatus();
}

absl::Status QueuePair::CheckSend(const SendWork& work) const {
  const Limits& limits = commons_.device->limits();
  if (work.opcode == Opcode::kInvalidate) {
    if (!limits.windows) return absl::UnimplementedError("the device has no windows");
    if (commons_.regions.IsWindow(id_, work.invalidate_key)) return absl::OkStatus();
    return absl::NotFoundError("the key is no live window of this queue pair");
  }
  const bool reads = work.opcode == Opcode::kRead;
  ESDP_RETURN_IF_ERROR(CheckEntries(
      work.entries, work.entry_count,
      reads ? limits.read_scatter_gather_max : limits.scatter_gather_max, /*writes=*/reads));
  if (LengthOf(work.entries, work.entry_count) > limits.message_bytes_max) {
    return absl::OutOfRangeError("longer than limits().message_bytes_max");
  }
  if (reads && agreed_.initiator_depth == 0) {
    return absl::FailedPreconditionError("no reads in flight were negotiated");
  }
  return absl::OkStatus();
}

// Holds the regions. Empty entries are left out: devices read their length as 2 GiB, or never come
// past them.
uint32_t QueuePair::WriteDown(const ScatterEntry* entries, uint32_t count,
                              GrowingRing<RegionId>& held, std::vector<ibv_sge>& written) {
  const size_t before = written.size();
  for (uint32_t i = 0; i < count; ++i) {
    const ScatterEntry& entry = entries[i];
    const uint32_t key = commons_.regions.Hold(entry.region);
    held.PushBack(entry.region);
    if (entry.length == 0) continue;
    written.push_back(ibv_sge{
        .addr = reinterpret_cast<uint64_t>(entry.address), .length = entry.length, .lkey = key});
  }
  return static_cast<uint32_t>(written.size() - before);
}

void QueuePair::WriteSend(const SendWork& work, bool last, bool internal) {
  const uint64_t number = first_send_ + sends_.size();
  const uint32_t count = work.opcode == Opcode::kInvalidate ? 0 : work.entry_count;
  const uint32_t written_entries =
      WriteDown(work.entries, count, send_regions_, commons_.scratch.entries);
  sends_.PushBack({.work_id = work.work_id,
                   .opcode = work.opcode,
                   .internal = internal,
                   .key = work.invalidate_key,
                   .regions = count});
  if (internal) ++internal_;
  ibv_send_wr& written = commons_.scratch.sends.emplace_back();
  written.wr_id = SendName(tag_, number);
  written.opcode = VerbsOpcode(work);
  written.num_sge = static_cast<int>(written_entries);
  unsigned flags = 0;
  // On siw a completion says nothing of the work before it: sends overtake reads, and what asks for
  // no completion goes to TCP by reference.
  const bool alone = commons_.device->is_iwarp();
  if (last || alone || number % kSilentMost == 0) flags |= IBV_SEND_SIGNALED;
  if (work.solicited) flags |= IBV_SEND_SOLICITED;
  // siw refuses an invalidation whose bytes lie in the list itself.
  const bool may_be_inline = work.opcode == Opcode::kWrite ||
                             (work.opcode == Opcode::kSend && !(work.has_invalidate && alone));
  // What is in the list the processor has read.
  if (may_be_inline && LengthOf(work.entries, count) <= inline_max_ &&
      commons_.regions.AreReachable(work.entries, count)) {
    flags |= IBV_SEND_INLINE;
  }
  written.send_flags = flags;
  if (work.opcode == Opcode::kRead || work.opcode == Opcode::kWrite) {
    written.wr.rdma.remote_addr = work.remote.address;
    written.wr.rdma.rkey = work.remote.key;
  } else {
    written.invalidate_rkey = work.invalidate_key;
    written.wr.rdma.rkey = work.invalidate_key;  // where libsiw looks for it
  }
}

// A read whose bytes the peer would answer wrongly becomes two, of which nobody is told of the
// first.
void QueuePair::WriteRead(const SendWork& work, bool last) {
  const bool one_entry = work.entry_count == 1;  // all that siw takes
  if (!one_entry || !commons_.device->is_iwarp()) return WriteSend(work, last);
  const uint32_t length = work.entries[0].length;
  const uint64_t in_page = kPageBytes - work.remote.address % kPageBytes;
  if (length > kAnsweredFromACopy || in_page >= length) return WriteSend(work, last);
  const auto part = static_cast<uint32_t>(in_page);
  ScatterEntry entry = work.entries[0];
  SendWork half = work;
  half.entries = &entry;
  entry.length = part;
  WriteSend(half, /*last=*/false, /*internal=*/true);
  entry.address += part;
  entry.length = work.entries[0].length - part;
  half.remote.address += part;
  WriteSend(half, last);
}

// The lists are complete: nothing moves any more, so they may point into each other.
absl::Status QueuePair::Link() {
  Scratch& scratch = commons_.scratch;
  ibv_sge* entry = scratch.entries.data();
  for (size_t i = 0; i < scratch.sends.size(); ++i) {
    scratch.sends[i].sg_list = entry;
    entry += scratch.sends[i].num_sge;
    scratch.sends[i].next = i + 1 < scratch.sends.size() ? &scratch.sends[i + 1] : nullptr;
  }
  ibv_send_wr* refused = nullptr;
  const int error = commons_.calls().post_send(verbs_, scratch.sends.data(), &refused);
  if (error == 0) return absl::OkStatus();
  // The room was counted, so only a broken device is left as a reason: what it took stays posted.
  const size_t taken = refused == nullptr ? 0 : static_cast<size_t>(refused - scratch.sends.data());
  if (taken > 0 && taken < scratch.sends.size()) {
    End(Cause::kDevice, "the device took half a batch");
    return absl::OkStatus();
  }
  for (size_t i = 0; i < scratch.sends.size(); ++i) {
    for (uint32_t held = sends_.back().regions; held > 0; --held) {
      commons_.regions.Release(send_regions_.back());
      send_regions_.EraseAt(send_regions_.size() - 1);
    }
    if (sends_.back().internal) --internal_;
    sends_.EraseAt(sends_.size() - 1);
  }
  return Refused("the work", error);
}

absl::Status QueuePair::PostSend(absl::Span<const SendWork> batch) {
  if (phase_ != Phase::kReady) {
    return absl::FailedPreconditionError("the queue pair is not connected");
  }
  if (batch.empty()) return absl::OkStatus();
  if (sends_.size() - internal_ + told_sends_ + batch.size() > options_.send_work) {
    return absl::ResourceExhaustedError("the send queue is full: poll its completions first");
  }
  for (const SendWork& work : batch) ESDP_RETURN_IF_ERROR(CheckSend(work));
  commons_.scratch.sends.clear();
  commons_.scratch.entries.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    const bool last = i + 1 == batch.size();
    batch[i].opcode == Opcode::kRead ? WriteRead(batch[i], last) : WriteSend(batch[i], last);
  }
  return Link();
}

absl::StatusOr<RemoteRange> QueuePair::Bind(RegionId region, std::byte* address, uint64_t length,
                                            Access access) {
  if (phase_ != Phase::kReady) {
    return absl::FailedPreconditionError("a window is bound while the queue pair is ready");
  }
  if (internal_ >= options_.send_work) {
    return absl::ResourceExhaustedError("too many windows are being bound");
  }
  ESDP_ASSIGN_OR_RETURN(const RegionTable::Binding binding,
                        commons_.regions.PrepareBind(region, address, length, access));
  ibv_send_wr work{};
  const uint64_t number = first_send_ + sends_.size();
  work.wr_id = SendName(tag_, number);
  work.opcode = IBV_WR_BIND_MW;
  work.send_flags = IBV_SEND_SIGNALED;
  work.bind_mw.mw = binding.window;
  work.bind_mw.rkey = binding.key;
  work.bind_mw.bind_info = binding.info;
  ibv_send_wr* refused = nullptr;
  if (const int error = commons_.calls().post_send(verbs_, &work, &refused); error != 0) {
    commons_.regions.NotBound(binding);
    return Refused("to bind a window", error);
  }
  sends_.PushBack({.internal = true});
  ++internal_;
  commons_.regions.Bound(id_, binding, region);
  return RemoteRange{.key = binding.key, .address = reinterpret_cast<uint64_t>(address)};
}

absl::Status QueuePair::PostReceive(absl::Span<const ReceiveWork> batch) {
  if (phase_ == Phase::kClosing || phase_ == Phase::kEnding || phase_ == Phase::kEnded) {
    return absl::FailedPreconditionError("the queue pair's connection is over");
  }
  if (receives_.size() + told_receives_ + batch.size() > options_.receive_work) {
    return absl::ResourceExhaustedError("the receive queue is full: poll its completions first");
  }
  for (const ReceiveWork& work : batch) {
    ESDP_RETURN_IF_ERROR(CheckEntries(work.entries, work.entry_count,
                                      commons_.device->limits().scatter_gather_max,
                                      /*writes=*/true));
  }
  if (batch.empty()) return absl::OkStatus();
  for (const ReceiveWork& work : batch) {
    uint32_t written =
        WriteDown(work.entries, work.entry_count, receive_regions_, waiting_entries_);
    if (written == 0 && commons_.device->is_iwarp()) {
      waiting_entries_.push_back({});  // libsiw refuses a receive without an entry
      written = 1;
    }
    waiting_counts_.push_back(written);
    receives_.PushBack({.work_id = work.work_id, .regions = work.entry_count});
  }
  return verbs_ == nullptr ? absl::OkStatus() : PostWaitingReceives();
}

absl::Status QueuePair::PostWaitingReceives() {
  std::vector<ibv_recv_wr>& receives = commons_.scratch.receives;
  receives.resize(waiting_counts_.size());
  ibv_sge* entry = waiting_entries_.data();
  for (size_t i = 0; i < receives.size(); ++i) {
    receives[i] = {.wr_id = ReceiveName(tag_),
                   .next = i + 1 < receives.size() ? &receives[i + 1] : nullptr,
                   .sg_list = entry,
                   .num_sge = static_cast<int>(waiting_counts_[i])};
    entry += waiting_counts_[i];
  }
  ibv_recv_wr* refused = nullptr;
  if (!receives.empty() && commons_.calls().post_receive(verbs_, receives.data(), &refused) != 0) {
    End(Cause::kDevice, "the device refuses receives");
  }
  waiting_entries_.clear();
  waiting_counts_.clear();
  return absl::OkStatus();
}

}  // namespace esdp::fabric::verbs
