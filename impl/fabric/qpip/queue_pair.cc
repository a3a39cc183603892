#include "impl/fabric/qpip/queue_pair.h"

#include <algorithm>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/soft/posting.h"

namespace esdp::fabric::qpip {
namespace {

// What one queue pair may send before others have their turn.
constexpr int kWritesPerTurn = 4;

RdmapOpcode SendOpcode(const SendSlot& slot) {
  if (slot.has_invalidate) {
    return slot.solicited ? RdmapOpcode::kSendSolicitedInvalidate : RdmapOpcode::kSendInvalidate;
  }
  return slot.solicited ? RdmapOpcode::kSendSolicited : RdmapOpcode::kSend;
}

Completion CompletionOf(QueuePairId id, const SendSlot& slot, WorkStatus status) {
  return Completion{
      .queue_pair = id, .work_id = slot.work_id, .opcode = slot.opcode, .status = status};
}

}  // namespace

QueuePair::QueuePair(QueuePairId id, const QueuePairOptions& options, FabricShared& commons)
    : id_(id),
      options_(options),
      commons_(commons),
      inbound_(id, commons.regions, receives_, sends_, reads_, *this),
      transmitter_(id, commons.regions, sends_.entries()) {
  commons_.outbox.ReserveMore(options_.send_work);
}

QueuePair::~QueuePair() {
  Discard();
  commons_.outbox.ReserveLess(options_.send_work + receives_reserved_);
}

void QueuePair::Establish(TcpStream stream, WatchId watch, const Negotiated& negotiated,
                          ConstBytes private_data) {
  stream_ = std::move(stream);
  watch_ = watch;
  negotiated_ = negotiated;
  local_ = stream_.LocalAddress();
  peer_ = stream_.PeerAddress();
  receiver_.set_checksum(negotiated.checksum);
  transmitter_.set_checksum(negotiated.checksum);
  const Duration idle = options_.keep_alive_idle;
  keep_alive_idle_ =
      stream_.SetKeepAlive(idle > Duration::zero() ? idle : commons_.options.keep_alive_idle);
  may_send_ = negotiated.initiator;
  commons_.poller.Change(watch_, true, false);
  if (negotiated.awaits_ready_sign) {
    phase_ = Phase::kAwaitingReady;
    commons_.poller.SetDeadline(
        watch_, AddSaturating(commons_.clock->Now(), commons_.options.startup_timeout));
    return;
  }
  BecomeReady(private_data);
  if (!negotiated.sends_ready_sign) return;
  OutMessage ready;
  ready.opcode = RdmapOpcode::kWrite;
  ready.header.tagged = true;
  ready.header.ulp_control = RdmapControl(ready.opcode);
  transmitter_.PushBack(ready);
  Transmit();
}

// --- posting ---

absl::Status QueuePair::PostSend(absl::Span<const SendWork> batch) {
  if (phase_ != Phase::kReady) return absl::FailedPreconditionError("the queue pair is not ready");
  if (sends_.size() + batch.size() > options_.send_work) {
    return absl::ResourceExhaustedError("the send queue is full: poll completions first");
  }
  ESDP_RETURN_IF_ERROR(soft::CheckSends(batch, id_, negotiated_.initiator_depth, commons_.regions));
  if (sends_.end() == 0) ReserveForSends();
  soft::PushSends(batch, commons_.regions, sends_);
  Transmit();
  return absl::OkStatus();
}

// Before the first work, all that its course may take: how much waits at once is a matter of
// chance.
void QueuePair::ReserveForSends() {
  sends_.Reserve(options_.send_work);
  transmitter_.Reserve();
  reads_.Reserve(negotiated_.initiator_depth);
}

// The completions of as many as were ever posted at once: that may be far fewer than there may be.
void QueuePair::ReserveForReceives(size_t receives) {
  commons_.outbox.ReserveAlso(receives - receives_reserved_);
  receives_reserved_ = receives;
}

absl::Status QueuePair::PostReceive(absl::Span<const ReceiveWork> batch) {
  if (phase_ == Phase::kClosing || phase_ == Phase::kEnded) {
    return absl::FailedPreconditionError("the queue pair has left the ready state");
  }
  if (receives_.size() + batch.size() > options_.receive_work) {
    return absl::ResourceExhaustedError("the receive queue is full: poll completions first");
  }
  ESDP_RETURN_IF_ERROR(soft::CheckReceives(batch, commons_.regions));
  if (receives_.size() + batch.size() > receives_reserved_) {
    ReserveForReceives(receives_.size() + batch.size());
  }
  soft::PushReceives(batch, commons_.regions, receives_);
  return absl::OkStatus();
}

void QueuePair::ReleaseUnusedReceives() {
  for (uint64_t at = receives_.begin(); at != receives_.end(); ++at) {
    const ReceiveSlot& slot = receives_.At(at);
    if (slot.finished || inbound_.IsNext(at)) continue;
    soft::ReleasePages(slot, receives_.entries());
  }
}

void QueuePair::OnPolled(const Completion& completion) {
  if (completion.opcode == Opcode::kReceive) {
    receives_.PopFront(commons_.regions);
  } else {
    sends_.PopFront(commons_.regions);
  }
}

// --- sending ---

// Writes until the socket is full or nothing is left; true if anything left.
bool QueuePair::Transmit() {
  bool moved = false;
  for (int i = 0; i < kWritesPerTurn && may_send_ && !full_; ++i) {
    PullMessages();
    if (transmitter_.empty()) break;
    const Transmitter::Outcome outcome = transmitter_.WriteOnce(
        stream_, commons_.transmit_scratch, [this](const OutMessage& message) { OnSent(message); });
    if (outcome == Transmitter::Outcome::kRefused) {
      RefusePeerRead();
      return true;
    }
    if (outcome == Transmitter::Outcome::kFailed) {
      // What the peer said before it went may still be there, and tells more than the error.
      full_ = true;
      if (phase_ == Phase::kReady && announced_ && Receive()) return true;
      if (stream_.is_open()) {
        const int error = transmitter_.error();
        End(CauseOfLoss(error), "writing failed: " + ErrorText(error));
      }
      return true;
    }
    moved = true;
    full_ = outcome == Transmitter::Outcome::kFull;
  }
  FinishSends();
  if (phase_ != Phase::kReady && phase_ != Phase::kClosing) return moved;
  const bool wants_more = may_send_ && (full_ || !transmitter_.empty());
  if (phase_ == Phase::kClosing && !wants_more && !fin_sent_) {
    stream_.EndWrites();
    fin_sent_ = true;
  }
  commons_.poller.Change(watch_, !peer_ended_, wants_more);
  return moved;
}

// Own work and answers to the peer's reads take turns, message by message.
void QueuePair::PullMessages() {
  while (transmitter_.size() < TransmitScratch::kFramesMax) {
    if (!peer_reads_.empty() && (peers_turn_ || next_send_ == sends_.end())) {
      PullPeerRead();
      peers_turn_ = false;
    } else if (PullSend()) {
      peers_turn_ = true;
    } else if (!peer_reads_.empty()) {
      PullPeerRead();
    } else {
      return;
    }
  }
}

// False when there is none, or the first has to wait.
bool QueuePair::PullSend() {
  if (next_send_ == sends_.end()) return false;
  SendSlot& slot = sends_.At(next_send_);
  if (slot.finished) {
    ++next_send_;
    return true;
  }
  if (slot.opcode == Opcode::kRead && reads_.size() >= negotiated_.initiator_depth) return false;
  if (slot.opcode == Opcode::kInvalidate) {
    // The peer may have invalidated it since: it is gone either way.
    commons_.regions.Invalidate(id_, slot.invalidate_key);
    slot.finished = true;
    slot.status = WorkStatus::kSuccess;
    ++next_send_;
    return true;
  }
  transmitter_.PushBack(MessageOf(slot, next_send_++));
  return true;
}

OutMessage QueuePair::MessageOf(SendSlot& slot, uint64_t index) {
  OutMessage message;
  message.slot = index;
  message.length = slot.length;
  message.place = slot.place;
  switch (slot.opcode) {
    case Opcode::kWrite:
      message.opcode = RdmapOpcode::kWrite;
      message.header.tagged = true;
      message.header.tag = slot.remote.key;
      message.header.offset = slot.remote.address;
      break;
    case Opcode::kRead: {
      const absl::StatusOr<uint32_t> tag = commons_.regions.DrawTag();
      slot.wire_name = tag.ok() ? *tag : read_sequence_;
      message.opcode = RdmapOpcode::kReadRequest;
      message.source = OutMessage::Source::kReadRequest;
      message.length = kReadRequestBytes;
      message.header.queue = static_cast<uint32_t>(DdpQueue::kReadRequest);
      message.header.sequence = read_sequence_++;
      message.request = ReadRequest{.sink_tag = slot.wire_name,
                                    .sink_offset = 0,
                                    .length = slot.length,
                                    .source_tag = slot.remote.key,
                                    .source_offset = slot.remote.address};
      reads_.PushBack(ReadInFlight{.slot = index,
                                   .sink_tag = slot.wire_name,
                                   .length = slot.length,
                                   .received = 0,
                                   .place = slot.place});
      break;
    }
    default:
      slot.wire_name = send_sequence_++;
      message.opcode = SendOpcode(slot);
      message.header.ulp_word = slot.has_invalidate ? slot.invalidate_key : 0;
      message.header.sequence = slot.wire_name;
      break;
  }
  message.header.ulp_control = RdmapControl(message.opcode);
  return message;
}

void QueuePair::PullPeerRead() {
  OutMessage message;
  message.request = peer_reads_.TakeFront();
  message.opcode = RdmapOpcode::kReadResponse;
  message.source = OutMessage::Source::kPeerRead;
  message.length = message.request.length;
  message.header.tagged = true;
  message.header.tag = message.request.sink_tag;
  message.header.offset = message.request.sink_offset;
  message.header.ulp_control = RdmapControl(message.opcode);
  ++responses_;
  transmitter_.PushBack(message);
}

void QueuePair::OnSent(const OutMessage& message) {
  if (message.source == OutMessage::Source::kPeerRead) {
    --responses_;
    ++peer_reads_served_;
  }
  // A read is done when its response is there.
  if (!message.slot || message.source == OutMessage::Source::kReadRequest) return;
  SendSlot& slot = sends_.At(*message.slot);
  slot.finished = true;
  slot.status = WorkStatus::kSuccess;
}

void QueuePair::FinishSends() {
  for (; next_finished_ != sends_.end() && sends_.At(next_finished_).finished; ++next_finished_) {
    const SendSlot& slot = sends_.At(next_finished_);
    commons_.outbox.PushBack(CompletionOf(id_, slot, slot.status));
  }
}

}  // namespace esdp::fabric::qpip
