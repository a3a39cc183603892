#include <algorithm>
#include <optional>
#include <span>

#include "impl/fabric/local/queue_pair.h"

// From the send queue, and from memory that the peer reads, into our block.

namespace esdp::fabric::local {

using soft::SendSlot;

namespace {

// Of a write that the peer takes by itself: it costs more to wait for that than to copy less.
constexpr uint32_t kWriteFromMin = 16384;

// Of several entries the first is a header, which says nothing of how the rest is aligned.
uint32_t HeadOf(const SendSlot& slot, const soft::EntryList& entries) {
  return slot.entry_count > 1 ? entries.At(slot.place.entry).length : 0;
}

}  // namespace

bool QueuePair::HasUnsent() const { return next_send_ != sends_.end() || !peer_reads_.empty(); }

bool QueuePair::Transmit() {
  bool moved = false;
  bool again = true;
  while (again) {
    if (FinishWrites()) moved = true;
    while (PutNext()) moved = true;
    if (channel_ == nullptr) return true;
    if (channel_->writer().HasUnpublished()) channel_->Publish();
    if (channel_->IsBroken()) return Breach();
    // What the peer gives back before it can know that we wait is seen here.
    again = channel_->SetStarved(WaitsForPeer()) && channel_->writer().Refresh();
  }
  FinishSends();
  return moved;
}

// Own work and answers to the peer's reads take turns, piece by piece.
bool QueuePair::PutNext() {
  if (phase_ != Phase::kReady && phase_ != Phase::kClosing) return false;
  peers_turn_ = !peers_turn_;
  return peers_turn_ ? PutOwn() || PutAnswer() : PutAnswer() || PutOwn();
}

// False when there is none, or it has to wait.
bool QueuePair::PutOwn() {
  if (next_send_ == sends_.end()) return false;
  SendSlot& slot = sends_.At(next_send_);
  bool done = true;
  if (slot.opcode == Opcode::kInvalidate) {
    // The peer may have invalidated it since: it is gone either way.
    Invalidate(slot.invalidate_key);
  } else if (slot.opcode == Opcode::kRead) {
    if (!slot.finished && !Pull(slot)) return false;
    ++next_send_;
    return true;
  } else if (slot.opcode == Opcode::kWrite && !begun_ && PutWriteFrom(slot)) {
    ++next_send_;
    return true;
  } else {
    if (!PutTransfer(slot)) return false;
    done = sent_ == slot.length;
  }
  if (!done) return true;
  slot.finished = true;
  slot.status = WorkStatus::kSuccess;
  ++next_send_;
  sent_ = 0;
  begun_ = false;
  return true;
}

void QueuePair::Gather(Bytes to) {
  while (!to.empty()) {
    const Bytes piece = sends_.entries().Next(send_place_, to.size());
    CopyBytes(to, piece);
    to = to.subspan(piece.size());
  }
}

// The next piece of a Send or an RDMA Write.
bool QueuePair::PutTransfer(SendSlot& slot) {
  SlotWriter& writer = channel_->writer();
  const uint32_t head = begun_ ? 0 : HeadOf(slot, sends_.entries());
  const std::optional<Bytes> room = writer.Reserve(slot.length - sent_, head);
  if (!room) return false;
  if (!begun_) send_place_ = slot.place;
  Gather(*room);
  const auto bytes = static_cast<uint32_t>(room->size());
  SlotHeader header;
  if (slot.opcode == Opcode::kWrite) {
    header.kind = SlotKind::kWrite;
    header.key = slot.remote.key;
    header.address = slot.remote.address + sent_;
  } else {
    header.kind = begun_ ? SlotKind::kSendMore : SlotKind::kSend;
    header.length = slot.length;
    header.key = slot.invalidate_key;
    header.flags = slot.has_invalidate ? kInvalidates : uint8_t{0};
  }
  writer.Put(header, bytes);
  if (slot.opcode == Opcode::kWrite) writes_end_ = writer.put();
  ShowIfLong(bytes);
  begun_ = true;
  sent_ += bytes;
  return true;
}

// Where the peer may take the bytes by itself, and there is room for a word on where they lie.
bool QueuePair::PutWriteFrom(const SendSlot& slot) {
  if (slot.length < kWriteFromMin) return false;
  std::array<WriteSource, kWriteSourcesMax> sources;
  size_t count = 0;
  if (!FindSources(slot, sources, count)) return false;
  SlotWriter& writer = channel_->writer();
  const auto bytes = static_cast<uint32_t>(count * sizeof(WriteSource));
  const std::optional<Bytes> room = writer.Reserve(bytes);
  if (!room) return false;
  CopyBytes(*room, std::as_bytes(std::span(sources)).first(bytes));
  writer.Put({.kind = SlotKind::kWriteFrom,
              .length = slot.length,
              .key = slot.remote.key,
              .address = slot.remote.address},
             bytes);
  writes_end_ = writer.put();
  writes_.PushBack({.work = next_send_, .end = writes_end_});
  channel_->PublishToSleeper();
  return true;
}

bool QueuePair::FindSources(const SendSlot& slot,
                            std::array<WriteSource, kWriteSourcesMax>& sources, size_t& count) {
  const bool is_proved = IsProved();
  for (uint32_t i = 0; i < slot.entry_count; ++i) {
    const ScatterEntry& entry = sends_.entries().At(slot.place.entry + i);
    if (entry.length == 0) continue;
    if (count == sources.size()) return false;
    const std::optional<ShownWindow> shown =
        PlaceFor(is_proved, entry.region, entry.address, entry.length);
    if (!shown) return false;
    sources[count++] = {
        .region = shown->region, .address = shown->address, .length = shown->length};
  }
  return true;
}

bool QueuePair::FinishWrites() {
  if (writes_.empty()) return false;
  (void)channel_->writer().Refresh();
  bool any = false;
  for (; !writes_.empty() && writes_.front().end <= channel_->writer().taken(); any = true) {
    SendSlot& slot = sends_.At(writes_.front().work);
    slot.finished = true;
    slot.status = WorkStatus::kSuccess;
    writes_.PopFront();
  }
  return any;
}

// It is withdrawn from the peer's sight first.
void QueuePair::Invalidate(uint32_t key) {
  if (channel_ != nullptr) Hide(channel_->windows(), key);
  (void)shared_.regions.Invalidate(id_, key);
}

// By ourselves where nothing before it is under way, of which the peer's memory may depend. False:
// it has to wait.
bool QueuePair::Pull(SendSlot& slot) {
  pulling_ = false;
  SlotWriter& writer = channel_->writer();
  if (!reads_.empty()) return PutRead(slot);
  if (writer.taken() < writes_end_) (void)writer.Refresh();
  if (writer.taken() < writes_end_) return PutRead(slot);
  const auto pull = [&] {
    return puller_.Pull(slot, sends_.entries(), channel_->peers_windows(), process_,
                        channel_->peers_regions(), pull_budget_);
  };
  ReadPuller::Outcome outcome = pull();
  if (outcome == ReadPuller::Outcome::kNotPassed) {
    // Its file was sent before the window was shown.
    TakeFiles(/*is_readable=*/false);
    drained_ = true;
    outcome = pull();
  }
  if (outcome == ReadPuller::Outcome::kMore) {
    pulling_ = true;
    return false;
  }
  if (outcome != ReadPuller::Outcome::kDone) return PutRead(slot);
  slot.finished = true;
  slot.status = WorkStatus::kSuccess;
  return true;
}

bool QueuePair::PutRead(const SendSlot& slot) {
  if (reads_.size() >= agreement_.initiator_depth) return false;
  SlotWriter& writer = channel_->writer();
  if (!writer.Reserve(0)) return false;
  writer.Put({.kind = SlotKind::kReadRequest,
              .length = slot.length,
              .key = slot.remote.key,
              .address = slot.remote.address},
             0);
  reads_.PushBack(ReadInFlight{.slot = next_send_, .received = 0, .place = slot.place});
  ++reads_begun_;
  return true;
}

// The peer may begin with a long piece while we copy the next one.
void QueuePair::ShowIfLong(size_t bytes) {
  if (bytes >= kLongMessage) channel_->PublishToSleeper();
}

// The key is looked up for each piece: it may have been withdrawn since the last one.
bool QueuePair::PutAnswer() {
  if (peer_reads_.empty()) return false;
  PeerRead& read = peer_reads_.front();
  const soft::TagAccess access =
      shared_.regions.Resolve(id_, read.key, read.address + read.answered,
                              read.length - read.answered, soft::TagRight::kRead);
  if (access.error != soft::TagError::kNone) {
    Refuse(EndReason::kAccess, "it has read where it was not shown memory",
           peer_reads_answered_ + 1);
    return false;
  }
  SlotWriter& writer = channel_->writer();
  const std::optional<Bytes> room = writer.Reserve(read.length - read.answered);
  if (!room) return false;
  CopyBytes(*room, ConstBytes(access.data, room->size()));
  writer.Put({.kind = SlotKind::kReadData}, static_cast<uint32_t>(room->size()));
  ShowIfLong(room->size());
  read.answered += static_cast<uint32_t>(room->size());
  if (read.answered != read.length) return true;
  peer_reads_.PopFront();
  ++peer_reads_answered_;
  return true;
}

void QueuePair::FinishSends() {
  for (; next_finished_ != sends_.end() && sends_.At(next_finished_).finished; ++next_finished_) {
    const SendSlot& slot = sends_.At(next_finished_);
    shared_.outbox.PushBack(Completion{
        .queue_pair = id_, .work_id = slot.work_id, .opcode = slot.opcode, .status = slot.status});
  }
}

}  // namespace esdp::fabric::local
