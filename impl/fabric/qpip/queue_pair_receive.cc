#include <algorithm>

#include "impl/fabric/qpip/queue_pair.h"

// What a queue pair does with what arrives, and how much of it in one turn.

namespace esdp::fabric::qpip {
namespace {

// What one turn reads before others have theirs, in bytes and, since a small frame costs far more
// than its bytes, in frames; a read that has begun is finished. And after how much of it
// completions go first: whoever polls can then answer while the rest is still on its way.
constexpr size_t kReceiveBudget = size_t{1} << 20;
constexpr size_t kFrameBudget = 4096;
constexpr size_t kReceivePart = size_t{32} << 10;

}  // namespace

bool QueuePair::OnReady(bool readable, bool writable) {
  if (phase_ == Phase::kClosing) return Drain();
  if (writable) full_ = false;
  bool moved = false;
  if (readable && (phase_ == Phase::kAwaitingReady || (phase_ == Phase::kReady && announced_))) {
    moved = Receive();
  }
  if (phase_ == Phase::kReady && (writable || moved)) moved = Transmit() || moved;
  return moved;
}

Receiver::Outcome QueuePair::ReadTurn() {
  spent_ = false;
  if (phase_ == Phase::kAwaitingReady) {
    return receiver_.ReadOneFrame(stream_, inbound_, commons_.receive_scratch);
  }
  const uint64_t bytes = receiver_.bytes();
  const uint64_t frames = receiver_.frames();
  while (true) {
    const Receiver::Outcome outcome =
        receiver_.Read(stream_, inbound_, commons_.receive_scratch, kReceivePart);
    if (outcome != Receiver::Outcome::kMore) return outcome;
    spent_ =
        receiver_.bytes() - bytes >= kReceiveBudget || receiver_.frames() - frames >= kFrameBudget;
    if (spent_ || commons_.outbox.HasCompletions()) return outcome;
  }
}

bool QueuePair::Receive() {
  const uint64_t before = receiver_.bytes();
  const uint64_t frames = receiver_.frames();
  const Receiver::Outcome outcome = ReadTurn();
  commons_.frames_received += receiver_.frames() - frames;
  switch (outcome) {
    case Receiver::Outcome::kDrained:
    case Receiver::Outcome::kMore:
      return receiver_.bytes() != before;
    case Receiver::Outcome::kEnd:
      OnPeerEnd();
      break;
    case Receiver::Outcome::kFailed:
      End(CauseOfLoss(receiver_.error()), "reading failed: " + ErrorText(receiver_.error()));
      break;
    case Receiver::Outcome::kRefused:
      OnRefused();
      break;
  }
  return true;
}

void QueuePair::OnMessage(uint64_t receive_slot) {
  const ReceiveSlot& slot = receives_.At(receive_slot);
  next_received_ = receive_slot + 1;
  commons_.outbox.PushBack(Completion{.queue_pair = id_,
                                      .work_id = slot.work_id,
                                      .opcode = Opcode::kReceive,
                                      .status = WorkStatus::kSuccess,
                                      .byte_length = slot.received,
                                      .invalidated_key = slot.invalidated_key,
                                      .has_invalidated = slot.has_invalidated,
                                      .written = slot.written});
}

QueuePair::Refusal QueuePair::OnReadRequest(const ReadRequest& request) {
  // A ready-to-receive read comes even where no reads were agreed on.
  const uint32_t depth = std::max<uint32_t>(negotiated_.responder_resources, 1);
  if (peer_reads_.size() + responses_ >= depth) return TerminateReason::kUntaggedNoBuffer;
  peer_reads_.PushBack(request);
  return std::nullopt;
}

void QueuePair::OnReadComplete() {
  SendSlot& slot = sends_.At(reads_.front().slot);
  slot.finished = true;
  slot.status = WorkStatus::kSuccess;
  reads_.PopFront();
  FinishSends();
}

QueuePair::Refusal QueuePair::OnReadySign(bool is_ready_sign) {
  may_send_ = true;
  if (phase_ != Phase::kAwaitingReady) return std::nullopt;
  if (!is_ready_sign) return TerminateReason::kMpaNoMatchingReadiness;
  BecomeReady({});
  return std::nullopt;
}

}  // namespace esdp::fabric::qpip
