#include <array>
#include <utility>

#include "impl/fabric/qpip/queue_pair.h"

// How a queue pair comes to be ready, and how it ends: in order, by a refusal of either side, or
// with its connection.

namespace esdp::fabric::qpip {
namespace {

WorkStatus StatusOf(TerminateReason reason) {
  if (IsAccessError(reason)) return WorkStatus::kRemoteAccess;
  if (reason == TerminateReason::kUntaggedNoBuffer) return WorkStatus::kReceiverNotReady;
  return WorkStatus::kRemoteOperation;
}

// Whether it is this work that the peer complains of.
bool IsBlamed(const SendSlot& slot, const Terminate& terminate) {
  if (terminate.read_request) {
    return slot.opcode == Opcode::kRead && slot.wire_name == terminate.read_request->sink_tag;
  }
  if (!terminate.segment) return false;
  const DdpHeader& segment = *terminate.segment;
  if (segment.tagged) {
    return slot.opcode == Opcode::kWrite && segment.tag == slot.remote.key &&
           segment.offset - slot.remote.address < slot.length;
  }
  return slot.opcode == Opcode::kSend && segment.sequence == slot.wire_name &&
         segment.queue == static_cast<uint32_t>(DdpQueue::kSend);
}

}  // namespace

void QueuePair::BecomeReady(ConstBytes private_data) {
  phase_ = Phase::kReady;
  LookAfterPeer();
  PushEvent(RendezvousType::kEstablished, Cause::kNone, "", private_data);
}

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
    CloseStream(/*abruptly=*/true);
    End(Cause::kLocalDisconnect, "disconnected by this side");
  }
  return absl::OkStatus();
}

// Sends and writes still go out; everything else is over.
void QueuePair::BeginClosing() {
  phase_ = Phase::kClosing;
  FlushReceives();
  for (uint64_t i = next_finished_; i != sends_.end(); ++i) {
    if (sends_.At(i).opcode == Opcode::kRead) sends_.At(i).finished = true;
  }
  reads_.clear();
  peer_reads_.clear();
  commons_.poller.SetDeadline(watch_,
                              AddSaturating(commons_.clock->Now(), commons_.options.close_timeout));
  Transmit();
}

// Closing: what the peer still sends is thrown away, so that it can go on to its end.
bool QueuePair::Drain() {
  constexpr int kReadsMax = 16;
  full_ = spent_ = false;
  Transmit();
  if (phase_ != Phase::kClosing) return true;
  for (int i = 0; i < kReadsMax && !peer_ended_; ++i) {
    const IoResult result = stream_.Read(Bytes(commons_.receive_scratch.staging));
    if (result.outcome == IoOutcome::kWouldBlock) return i != 0;
    if (result.outcome == IoOutcome::kMoved) continue;
    peer_ended_ = true;
    if (fin_sent_ || result.outcome == IoOutcome::kFailed) {
      End(Cause::kLocalDisconnect, "disconnected by this side");
    } else {
      commons_.poller.Change(watch_, false, true);
    }
    return true;
  }
  spent_ = !peer_ended_;
  if (peer_ended_ && fin_sent_) End(Cause::kLocalDisconnect, "disconnected by this side");
  return true;
}

void QueuePair::OnDeadline() {
  if (phase_ == Phase::kReady) return LookAfterPeer();
  if (phase_ == Phase::kAwaitingReady) {
    CloseStream(/*abruptly=*/true);
    End(Cause::kTimedOut, "the peer never said that it is ready");
  } else if (phase_ == Phase::kClosing) {
    CloseStream(/*abruptly=*/!fin_sent_);
    End(Cause::kLocalDisconnect, "disconnected by this side; the peer did not close in time");
  }
}

// What the system's keep-alive leaves out: while something is to be sent it does not ask. One look
// alone proves nothing, as after a time in which this whole machine stood still. [R14.2]
void QueuePair::LookAfterPeer() {
  const Duration before = std::exchange(unanswered_, stream_.Unanswered());
  if (2 * unanswered_ >= 7 * keep_alive_idle_ && before >= keep_alive_idle_) {
    CloseStream(/*abruptly=*/true);
    return End(Cause::kPeerSilent, "what was sent is not answered");
  }
  // The queue pairs of a fabric look at the same times, so that its thread is woken once for all.
  const Duration step = keep_alive_idle_ / 2;
  const Time now = commons_.clock->Now();
  commons_.poller.SetDeadline(watch_, AddSaturating(now, step - now.time_since_epoch() % step));
}

void QueuePair::OnNoMemory() {
  if (phase_ == Phase::kEnded) return;
  CloseStream(/*abruptly=*/true);
  End(Cause::kDevice, "no memory");
}

void QueuePair::OnPeerEnd() {
  if (receiver_.InsideFrame()) {
    End(Cause::kPeerReset, "the stream ended in the middle of a frame");
  } else {
    End(Cause::kPeerDisconnect, "closed by the peer");
  }
}

void QueuePair::OnRefused() {
  if (terminated_) {
    OnTerminated();
    return;
  }
  Terminate terminate;
  terminate.reason = receiver_.refusal();
  if (!IsMpaError(terminate.reason) && receiver_.header()) {
    terminate.segment_bytes = receiver_.ulpdu_bytes();
    terminate.segment = receiver_.header();
    terminate.read_request = inbound_.refused_request();
  }
  Refuse(terminate);
}

// The request has arrived long ago: its header is made up again.
void QueuePair::RefusePeerRead() {
  DdpHeader header;
  header.ulp_control = RdmapControl(RdmapOpcode::kReadRequest);
  header.queue = static_cast<uint32_t>(DdpQueue::kReadRequest);
  header.sequence = peer_reads_served_ + 1;
  Terminate terminate;
  terminate.reason = transmitter_.refusal();
  terminate.segment_bytes = static_cast<uint16_t>(header.bytes() + kReadRequestBytes);
  terminate.segment = header;
  terminate.read_request = transmitter_.front().request;
  Refuse(terminate);
}

// Tells the peer what it did, and ends. A responder may: a frame has come, if a faulty one
// (RFC 5044 section 7.1.2).
void QueuePair::Refuse(const Terminate& terminate) {
  std::vector<std::byte> farewell = transmitter_.Farewell(terminate, commons_.transmit_scratch);
  commons_.poller.Forget(std::exchange(watch_, WatchId::kNone));
  commons_.lingering.Add(std::move(stream_), std::move(farewell),
                         AddSaturating(commons_.clock->Now(), commons_.options.close_timeout));
  const bool access = IsAccessError(terminate.reason);
  const std::string why = inbound_.IsFlooded()
                              ? "more than " + std::to_string(Inbound::kEmptyFramesMax) +
                                    " frames in a row that carried nothing"
                              : ToString(terminate.reason);
  End(access ? Cause::kLocalAccess : Cause::kProtocol, "the peer was refused: " + why);
}

void QueuePair::OnTerminated() {
  Blame(*terminated_);
  const TerminateReason reason = terminated_->reason;
  End(Cause::kRemoteTerminate,
      ToString(reason) + (IsOwnFault(reason) ? "" : "; it says that this side broke that rule"));
}

void QueuePair::Blame(const Terminate& terminate) {
  for (uint64_t i = next_finished_; i != sends_.end(); ++i) {
    if (!IsBlamed(sends_.At(i), terminate)) continue;
    blamed_slot_ = i;
    blamed_status_ = StatusOf(terminate.reason);
    return;
  }
}

void QueuePair::End(Cause cause, std::string detail) {
  const bool was_established = phase_ != Phase::kAwaitingReady;
  if (phase_ == Phase::kClosing) cause = Cause::kLocalDisconnect;
  phase_ = Phase::kEnded;
  CloseStream(/*abruptly=*/false);
  FlushSends();
  FlushReceives();
  PushEvent(was_established ? RendezvousType::kDisconnected : RendezvousType::kConnectFailed, cause,
            std::move(detail), {});
}

// What stands behind the first unfinished work is flushed even if it has left: nobody knows what
// became of it.
void QueuePair::FlushSends() {
  FinishSends();
  for (; next_finished_ != sends_.end(); ++next_finished_) {
    const SendSlot& slot = sends_.At(next_finished_);
    const WorkStatus status =
        next_finished_ == blamed_slot_ ? blamed_status_ : WorkStatus::kFlushed;
    commons_.outbox.PushBack(Completion{
        .queue_pair = id_, .work_id = slot.work_id, .opcode = slot.opcode, .status = status});
  }
  next_send_ = sends_.end();
}

void QueuePair::FlushReceives() {
  for (; next_received_ != receives_.end(); ++next_received_) {
    commons_.outbox.PushBack(Completion{.queue_pair = id_,
                                        .work_id = receives_.At(next_received_).work_id,
                                        .opcode = Opcode::kReceive,
                                        .status = WorkStatus::kFlushed});
  }
}

void QueuePair::CloseStream(bool abruptly) {
  if (!stream_.is_open()) return;
  commons_.poller.Forget(std::exchange(watch_, WatchId::kNone));
  if (abruptly) {
    stream_.Abort();
  } else {
    stream_.Close();
  }
}

void QueuePair::Destroy() {
  CloseStream(/*abruptly=*/!fin_sent_);
  FlushSends();
  FlushReceives();
  phase_ = Phase::kEnded;
}

// Gives the regions back.
void QueuePair::Discard() {
  CloseStream(/*abruptly=*/!fin_sent_);
  while (sends_.size() != 0) sends_.PopFront(commons_.regions);
  while (receives_.size() != 0) receives_.PopFront(commons_.regions);
  commons_.regions.InvalidateAll(id_);
}

void QueuePair::PushEvent(RendezvousType type, Cause cause, std::string detail,
                          ConstBytes private_data) {
  RendezvousEvent event;
  event.type = type;
  event.queue_pair = id_;
  event.cause = cause;
  event.detail = std::move(detail);
  event.local = local_;
  event.peer = peer_;
  event.initiator_depth = negotiated_.initiator_depth;
  event.responder_resources = negotiated_.responder_resources;
  const size_t bytes = std::min(private_data.size(), event.private_data.size());
  event.private_data_bytes = static_cast<uint16_t>(bytes);
  CopyBytes(event.private_data, private_data.first(bytes));
  commons_.outbox.PushBack(std::move(event));
}

}  // namespace esdp::fabric::qpip
