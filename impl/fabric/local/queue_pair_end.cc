#include <algorithm>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/local/queue_pair.h"

// How a queue pair ends: in order, by a refusal of either side, or with its peer.

namespace esdp::fabric::local {

using soft::SendSlot;

void QueuePair::FailStartup(Cause cause, std::string detail, ConstBytes private_data) {
  phase_ = Phase::kEnded;
  FlushReceives();
  PushEvent(RendezvousType::kConnectFailed, cause, std::move(detail), private_data);
}

absl::Status QueuePair::Disconnect(bool orderly) {
  if (phase_ != Phase::kReady && (orderly || phase_ != Phase::kClosing)) {
    return absl::FailedPreconditionError("the queue pair is not connected");
  }
  if (orderly) {
    BeginClosing();
  } else {
    CloseChannel(EndReason::kReset);
    End(Cause::kLocalDisconnect, "disconnected by this side");
  }
  return absl::OkStatus();
}

// Sends and writes still go into the block; everything else is over.
void QueuePair::BeginClosing() {
  phase_ = Phase::kClosing;
  FlushReceives();
  incoming_ = {};
  for (uint64_t i = next_finished_; i != sends_.end(); ++i) {
    if (sends_.At(i).opcode == Opcode::kRead) sends_.At(i).finished = true;
  }
  reads_.clear();
  peer_reads_.clear();
  shared_.poller.SetDeadline(watch_,
                             AddSaturating(shared_.clock->Now(), shared_.options.close_timeout));
  (void)ProgressClosing();
}

// The peer has what stands in the block for as long as it likes, whatever becomes of us.
bool QueuePair::ProgressClosing() {
  Discard();
  const bool moved = Transmit();
  if (phase_ != Phase::kClosing) return true;
  const bool all_sent = next_send_ == sends_.end() && writes_.empty();
  if (!all_sent && !peer_gone_ && channel_->peer_end().reason == EndReason::kNone) return moved;
  CloseChannel(all_sent ? EndReason::kClosed : EndReason::kReset);
  End(Cause::kLocalDisconnect, "disconnected by this side");
  return true;
}

void QueuePair::OnDeadline() {
  if (phase_ != Phase::kClosing) return;
  CloseChannel(EndReason::kReset);
  End(Cause::kLocalDisconnect, "disconnected by this side; the peer did not take all in time");
}

void QueuePair::OnNoMemory() {
  if (phase_ == Phase::kEnded) return;
  CloseChannel(EndReason::kReset);
  End(Cause::kDevice, "no memory");
}

// All that it has published before has been taken, or never will be.
void QueuePair::OnPeersEnd(PeerEnd end) {
  switch (end.reason) {
    case EndReason::kClosed:
      if (!incoming_.active) return End(Cause::kPeerDisconnect, "closed by the peer");
      return End(Cause::kPeerReset, "closed by the peer in the middle of a message");
    case EndReason::kAccess:
      if (!reads_.empty() && end.refused_read == reads_begun_ - reads_.size() + 1) {
        blamed_slot_ = reads_.front().slot;
      }
      return End(Cause::kRemoteTerminate,
                 "it says that this side reached for memory that it was "
                 "not shown");
    case EndReason::kProtocol:
      return End(Cause::kRemoteTerminate, "it says that this side broke a rule");
    case EndReason::kReset:
      return End(Cause::kPeerReset, "broken off by the peer");
    case EndReason::kNone:
      return End(Cause::kPeerReset, "the peer's process is gone");
  }
}

// Tells the peer what it did, and ends.
QueuePair::Taking QueuePair::Refuse(EndReason reason, const std::string& detail,
                                    uint64_t refused_read) {
  CloseChannel(reason, refused_read);
  End(reason == EndReason::kAccess ? Cause::kLocalAccess : Cause::kProtocol,
      "the peer was refused: " + detail);
  return Taking::kEnded;
}

void QueuePair::End(Cause cause, std::string detail) {
  if (phase_ == Phase::kClosing) cause = Cause::kLocalDisconnect;
  phase_ = Phase::kEnded;
  CloseChannel(EndReason::kReset);
  FlushSends();
  FlushReceives();
  PushEvent(RendezvousType::kDisconnected, cause, std::move(detail), {});
}

void QueuePair::CloseChannel(EndReason reason, uint64_t refused_read) {
  if (channel_ == nullptr) return;
  (void)FinishWrites();
  shared_.look_again = shared_.look_again || channel_->is_armed();
  channel_->TellEnd(reason, refused_read);
  shared_.poller.Forget(std::exchange(watch_, soft::WatchId::kNone));
  shared_.poller.Forget(std::exchange(process_watch_, soft::WatchId::kNone));
  process_ = {};
  puller_ = {};
  write_puller_ = {};
  pulls_write_ = false;
  writes_.clear();
  pulling_ = false;
  shared_.left_channels.Leave(std::move(channel_));
}

// What stands behind the first unfinished work is flushed even if it has left: nobody knows what
// became of it.
void QueuePair::FlushSends() {
  FinishSends();
  for (; next_finished_ != sends_.end(); ++next_finished_) {
    const SendSlot& slot = sends_.At(next_finished_);
    const bool is_blamed = next_finished_ == blamed_slot_;
    shared_.outbox.PushBack(
        Completion{.queue_pair = id_,
                   .work_id = slot.work_id,
                   .opcode = slot.opcode,
                   .status = is_blamed ? WorkStatus::kRemoteAccess : WorkStatus::kFlushed});
  }
  next_send_ = sends_.end();
}

void QueuePair::FlushReceives() {
  for (; next_received_ != receives_.end(); ++next_received_) {
    shared_.outbox.PushBack(Completion{.queue_pair = id_,
                                       .work_id = receives_.At(next_received_).work_id,
                                       .opcode = Opcode::kReceive,
                                       .status = WorkStatus::kFlushed});
  }
}

void QueuePair::Destroy() {
  CloseChannel(EndReason::kReset);
  FlushSends();
  FlushReceives();
  phase_ = Phase::kEnded;
}

void QueuePair::PushEvent(RendezvousType type, Cause cause, std::string detail,
                          ConstBytes private_data) {
  RendezvousEvent event;
  event.type = type;
  event.queue_pair = id_;
  event.cause = cause;
  event.detail = std::move(detail);
  event.local = agreement_.local;
  event.peer = agreement_.peer;
  event.initiator_depth = agreement_.initiator_depth;
  event.responder_resources = agreement_.responder_resources;
  const size_t bytes = std::min(private_data.size(), event.private_data.size());
  event.private_data_bytes = static_cast<uint16_t>(bytes);
  CopyBytes(event.private_data, private_data.first(bytes));
  shared_.outbox.PushBack(std::move(event));
}

}  // namespace esdp::fabric::local
