#include <algorithm>
#include <utility>

#include "impl/fabric/local/queue_pair.h"

// Out of the peer's block, into posted receives, memory that the peer may write, and the targets of
// our reads.

namespace esdp::fabric::local {
namespace {

constexpr size_t kLentMin = 1024;
static_assert(kLentMin >= kLentHeadBytes && kLentMin > kInlineMax);

// In one piece, and not so short that copying it is nothing.
bool IsWorthLending(const ReceivedSlot& slot) {
  return slot.header.length >= kLentMin && slot.payload.size() == slot.header.length;
}

}  // namespace

using soft::ReceiveSlot;
using soft::SendSlot;

// At most all the slots there are, so that others have their turn.
bool QueuePair::Receive() {
  SlotReader& reader = channel_->reader();
  bool moved = false;
  waits_for_receive_ = false;
  for (uint32_t i = 0; i < kSlots && !waits_for_receive_; ++i) {
    const std::optional<ReceivedSlot> slot = reader.Front();
    if (!slot) break;
    const Taking taking = Take(*slot);
    if (taking == Taking::kEnded) return true;
    waits_for_receive_ = taking == Taking::kWaits;
    if (taking == Taking::kWaits || taking == Taking::kPulls) {
      moved = moved || taking == Taking::kPulls;
      break;
    }
    reader.Pop();
    moved = true;
    if (taking == Taking::kLent) reader.Keep();
    if (slot->payload.size() >= kLongMessage && reader.HasUntold()) channel_->GiveBack();
  }
  if (reader.broken()) return Breach();
  if (reader.HasUntold()) channel_->GiveBack();
  return moved;
}

bool QueuePair::Breach() {
  (void)Refuse(EndReason::kProtocol, "its shared memory says what cannot be");
  return true;
}

QueuePair::Taking QueuePair::Take(const ReceivedSlot& slot) {
  // Whatever its slot says by now.
  if (write_puller_.active()) return GoOnWithWrite();
  switch (slot.header.kind) {
    case SlotKind::kSend:
      return TakeMessage(slot);
    case SlotKind::kSendMore:
      return TakePiece(slot.payload);
    case SlotKind::kWrite:
      return TakeWrite(slot);
    case SlotKind::kReadRequest:
      return TakeReadRequest(slot);
    case SlotKind::kReadData:
      return TakeReadData(slot);
    case SlotKind::kWriteFrom:
      return TakeWriteFrom(slot);
  }
  return Refuse(EndReason::kProtocol, "a slot of no kind");
}

QueuePair::Taking QueuePair::TakeMessage(const ReceivedSlot& slot) {
  if (incoming_.active) {
    return Refuse(EndReason::kProtocol, "a message begins inside another one");
  }
  if (next_received_ == receives_.end()) return Taking::kWaits;
  const ReceiveSlot& receive = receives_.At(next_received_);
  if (slot.header.length > receive.length) {
    return Refuse(EndReason::kProtocol, "a message is longer than its receive");
  }
  incoming_ = Incoming{.active = true,
                       .has_key = (slot.header.flags & kInvalidates) != 0,
                       .length = slot.header.length,
                       .received = 0,
                       .key = slot.header.key,
                       .place = receive.place};
  if (!options_.lend_messages || !IsWorthLending(slot)) return TakePiece(slot.payload);
  Scatter(receives_.entries(), incoming_.place, slot.payload.first(kLentHeadBytes));
  return FinishMessage(slot.payload.data());
}

void QueuePair::ReturnLent(size_t messages) {
  messages = std::min(messages, lent_polled_);
  lent_polled_ -= messages;
  if (channel_ == nullptr) return;
  SlotReader& reader = channel_->reader();
  for (size_t i = 0; i < messages; ++i) reader.LetGo();
  if (reader.HasUntold()) channel_->GiveBack();
}

QueuePair::Taking QueuePair::TakePiece(ConstBytes payload) {
  const uint32_t left = incoming_.length - incoming_.received;
  if (!incoming_.active || payload.size() > left || (payload.empty() && left != 0)) {
    return Refuse(EndReason::kProtocol, "a piece that belongs to no message");
  }
  incoming_.received += static_cast<uint32_t>(payload.size());
  Scatter(receives_.entries(), incoming_.place, payload);
  return incoming_.received == incoming_.length ? FinishMessage() : Taking::kTaken;
}

void QueuePair::Scatter(const soft::EntryList& entries, soft::Place& place, ConstBytes payload) {
  while (!payload.empty()) {
    const Bytes piece = entries.Next(place, payload.size());
    CopyBytes(piece, payload.first(piece.size()));
    payload = payload.subspan(piece.size());
  }
}

QueuePair::Taking QueuePair::FinishMessage(const std::byte* lent) {
  const Incoming message = std::exchange(incoming_, Incoming{});
  uint64_t written = kWrittenUnknown;
  if (message.has_key) {
    written = shared_.regions.Written(id_, message.key);
    Hide(channel_->windows(), message.key);
    if (shared_.regions.Invalidate(id_, message.key) != soft::TagError::kNone) {
      return Refuse(EndReason::kAccess, "a message invalidates a key that is no live window");
    }
  }
  shared_.outbox.PushBack(Completion{.queue_pair = id_,
                                     .work_id = receives_.At(next_received_).work_id,
                                     .opcode = Opcode::kReceive,
                                     .status = WorkStatus::kSuccess,
                                     .byte_length = message.length,
                                     .invalidated_key = message.has_key ? message.key : 0,
                                     .has_invalidated = message.has_key,
                                     .written = written,
                                     .lent = lent});
  ++next_received_;
  return lent == nullptr ? Taking::kTaken : Taking::kLent;
}

QueuePair::Taking QueuePair::TakeWrite(const ReceivedSlot& slot) {
  const SlotHeader& header = slot.header;
  const uint64_t length = slot.payload.size();
  const soft::TagAccess access =
      shared_.regions.Resolve(id_, header.key, header.address, length, soft::TagRight::kWrite);
  if (access.error != soft::TagError::kNone) {
    return Refuse(EndReason::kAccess, "it has written where it was not shown memory");
  }
  CopyBytes(Bytes(access.data, length), slot.payload);
  shared_.regions.NoteWritten(header.key, header.address, length);
  return Taking::kTaken;
}

QueuePair::Taking QueuePair::TakeWriteFrom(const ReceivedSlot& slot) {
  peers_write_ = slot.header;
  if (write_puller_.Begin(slot.payload, peers_write_.length)) return GoOnWithWrite();
  return Refuse(EndReason::kProtocol, "a write of bytes that lie nowhere");
}

// The key is looked up each time: it may have been withdrawn since the last one.
QueuePair::Taking QueuePair::GoOnWithWrite() {
  const SlotHeader& header = peers_write_;
  const soft::TagAccess access = shared_.regions.Resolve(id_, header.key, header.address,
                                                         header.length, soft::TagRight::kWrite);
  if (access.error != soft::TagError::kNone) {
    return Refuse(EndReason::kAccess, "it has written where it was not shown memory");
  }
  const uint64_t before = write_puller_.pulled();
  const auto pull = [&] {
    const uint64_t pulled = write_puller_.pulled();
    return write_puller_.Pull(Bytes(access.data + pulled, header.length - pulled), process_,
                              channel_->peers_regions(), pull_budget_);
  };
  WritePuller::Outcome outcome = pull();
  if (outcome == WritePuller::Outcome::kNotPassed) {
    TakeFiles(/*is_readable=*/false);  // its file was sent before the slot was put
    outcome = pull();
  }
  shared_.regions.NoteWritten(header.key, header.address + before, write_puller_.pulled() - before);
  pulls_write_ = outcome == WritePuller::Outcome::kMore;
  if (pulls_write_) return Taking::kPulls;
  write_puller_.End();
  if (outcome == WritePuller::Outcome::kDone) return Taking::kTaken;
  // Of one that is gone, or is about to say why it ends, nothing can be had.
  const PeerEnd end = channel_->peer_end();
  if (end.reason == EndReason::kNone && process_.IsAlive()) {
    return Refuse(EndReason::kProtocol, "a write of bytes that are not there");
  }
  OnPeersEnd(end);
  return Taking::kEnded;
}

QueuePair::Taking QueuePair::TakeReadRequest(const ReceivedSlot& slot) {
  const SlotHeader& header = slot.header;
  if (peer_reads_.size() >= agreement_.responder_resources) {
    return Refuse(EndReason::kProtocol, "more reads than were agreed on");
  }
  peer_reads_.PushBack(PeerRead{
      .key = header.key, .length = header.length, .address = header.address, .answered = 0});
  return Taking::kTaken;
}

QueuePair::Taking QueuePair::TakeReadData(const ReceivedSlot& slot) {
  if (reads_.empty()) return Refuse(EndReason::kProtocol, "the answer to no read");
  ReadInFlight& read = reads_.front();
  SendSlot& work = sends_.At(read.slot);
  const uint32_t left = work.length - read.received;
  if (slot.payload.size() > left || (slot.payload.empty() && left != 0)) {
    return Refuse(EndReason::kProtocol, "the answer to a read is longer than the read");
  }
  read.received += static_cast<uint32_t>(slot.payload.size());
  Scatter(sends_.entries(), read.place, slot.payload);
  if (read.received != work.length) return Taking::kTaken;
  work.finished = true;
  work.status = WorkStatus::kSuccess;
  reads_.PopFront();
  FinishSends();
  return Taking::kTaken;
}

// Closing: what the peer still sends is thrown away, so that it can go on to its end.
void QueuePair::Discard() {
  SlotReader& reader = channel_->reader();
  for (uint32_t i = 0; i < kSlots && reader.Front(); ++i) reader.Pop();
  if (reader.HasUntold()) channel_->GiveBack();
}

}  // namespace esdp::fabric::local
