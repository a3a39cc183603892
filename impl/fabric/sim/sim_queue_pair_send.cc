// Posting work and putting it on the wire.

#include <algorithm>
#include <utility>

#include "impl/fabric/sim/sim_queue_pair.h"

namespace esdp::fabric::sim {
namespace {

// What a connection manager would carry.
bool IsNews(FrameKind kind) {
  return kind == FrameKind::kReady || kind == FrameKind::kFinish ||
         kind == FrameKind::kFinishAnswer || kind == FrameKind::kReset;
}

}  // namespace

absl::Status SimQueuePair::PostSend(absl::Span<const SendWork> batch) {
  if (state_ != State::kReady) {
    return absl::FailedPreconditionError("the queue pair is not connected");
  }
  if (!may_send_) {
    return absl::FailedPreconditionError(
        "the initiator speaks first: wait for its first message before sending");
  }
  for (const SendWork& work : batch) {
    if (absl::Status status = CheckSend(work); !status.ok()) return status;
  }
  if (batch.size() > sends_.free_slots()) {
    return absl::ResourceExhaustedError("the send queue is full: poll completions first");
  }
  for (const SendWork& work : batch) {
    Record(StepKind::kPost, static_cast<uint64_t>(work.opcode),
           LengthOf(work.entries, work.entry_count));
    sends_.Push(work);
    if (around_.host != nullptr) around_.host->OnPost(work.opcode);
  }
  ScheduleTurn();
  return absl::OkStatus();
}

absl::Status SimQueuePair::PostReceive(absl::Span<const ReceiveWork> batch) {
  if (state_ == State::kClosing || state_ == State::kEnded) {
    return absl::FailedPreconditionError("the queue pair has left the ready state");
  }
  for (const ReceiveWork& work : batch) {
    absl::Status status = CheckEntries(work.entries, work.entry_count,
                                       around_.limits.scatter_gather_max, /*placing=*/true);
    if (!status.ok()) return status;
  }
  if (batch.size() > receives_.free_slots()) {
    return absl::ResourceExhaustedError("the receive queue is full: poll completions first");
  }
  for (const ReceiveWork& work : batch) {
    Record(StepKind::kPost, static_cast<uint64_t>(Opcode::kReceive),
           LengthOf(work.entries, work.entry_count));
    receives_.Push(work);
  }
  if (!batch.empty() && !waiting_.empty()) {
    around_.world.Schedule(around_.world.Now(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->RunWaiting();
    });
  }
  return absl::OkStatus();
}

void SimQueuePair::OnPolled(Opcode opcode) {
  if (opcode == Opcode::kReceive) {
    receives_.OnPolled();
  } else {
    sends_.OnPolled();
  }
}

absl::Status SimQueuePair::CheckSend(const SendWork& work) const {
  const Limits& limits = around_.limits;
  switch (work.opcode) {
    case Opcode::kReceive:
      return absl::InvalidArgumentError("a receive is posted with PostReceive");
    case Opcode::kInvalidate:
      if (!limits.windows) return absl::UnimplementedError("this fabric has no windows");
      if (!around_.regions.IsWindow(id_, work.invalidate_key)) {
        return absl::NotFoundError("the key is no live window of this queue pair");
      }
      return absl::OkStatus();
    case Opcode::kRead:
      if (initiator_depth_ == 0) {
        return absl::FailedPreconditionError("no RDMA reads were negotiated");
      }
      return CheckEntries(work.entries, work.entry_count, limits.read_scatter_gather_max,
                          /*placing=*/true);
    case Opcode::kSend:
    case Opcode::kWrite:
      if (work.has_invalidate && !limits.remote_invalidate) {
        return absl::UnimplementedError("this fabric has no Send with Invalidate");
      }
      return CheckEntries(work.entries, work.entry_count, limits.scatter_gather_max,
                          /*placing=*/false);
  }
  return absl::InvalidArgumentError("unknown opcode");
}

absl::Status SimQueuePair::CheckEntries(const ScatterEntry* entries, uint32_t count,
                                        uint32_t count_max, bool placing) const {
  if (count > count_max) return absl::OutOfRangeError("more entries than the fabric's limit");
  for (uint32_t i = 0; i < count; ++i) {
    if (absl::Status status = around_.regions.CheckLocal(entries[i], placing); !status.ok()) {
      return status;
    }
  }
  if (LengthOf(entries, count) > around_.limits.message_bytes_max) {
    return absl::OutOfRangeError("longer than message_bytes_max");
  }
  return absl::OkStatus();
}

void SimQueuePair::ScheduleTurn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  World& world = around_.world;
  // The adapter serves its queue pairs in an order that the caller cannot foresee.
  const Time seen = around_.host == nullptr ? world.Now() : around_.host->DeviceTime();
  world.Schedule(seen + world.DrawTransit(0), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->TakeTurn();
  });
}

void SimQueuePair::TakeTurn() {
  turn_scheduled_ = false;
  if (state_ != State::kReady && state_ != State::kClosing) return;
  const SendElement* element = sends_.Next();
  if (element != nullptr) {
    if (!MayTransmit(*element)) return;  // the next read response takes up the turn again
    TransmitElement(*element);
  }
  if (sends_.Next() != nullptr) {
    ScheduleTurn();
  } else if (state_ == State::kClosing) {
    Transmit({.kind = FrameKind::kFinish});
  }
}

bool SimQueuePair::MayTransmit(const SendElement& element) const {
  return element.opcode != Opcode::kRead || reads_in_flight_ < initiator_depth_;
}

void SimQueuePair::TransmitElement(const SendElement& element) {
  const uint64_t number = element.number;
  const Opcode opcode = element.opcode;
  sends_.OnTransmitted();
  if (opcode == Opcode::kInvalidate) {
    // The peer may have been faster: the key is dead either way.
    static_cast<void>(around_.regions.Invalidate(id_, element.key));
    sends_.Finish(number, WorkStatus::kSuccess);
    return;
  }
  Frame frame{.number = number, .remote = element.remote};
  if (opcode == Opcode::kRead) {
    ++reads_in_flight_;
    frame.kind = FrameKind::kReadRequest;
    frame.length = LengthOf(element.entries.data(), static_cast<uint32_t>(element.entries.size()));
    Transmit(std::move(frame));
    return;
  }
  frame.kind = opcode == Opcode::kSend ? FrameKind::kSend : FrameKind::kWrite;
  frame.key = element.key;
  frame.has_key = opcode == Opcode::kSend && element.has_key;
  frame.payload = Gather(element.entries);
  Transmit(std::move(frame));
  // iWARP family: what was handed to the stream is done with. InfiniBand family: the peer
  // acknowledges.
  if (around_.limits.initiator_speaks_first) sends_.Finish(number, WorkStatus::kSuccess);
}

// Of what is posted when the connection is broken off, the adapter may have been faster with some.
void SimQueuePair::TransmitSome() {
  for (uint64_t some = around_.world.random().Between(0, 2); some > 0; --some) {
    const SendElement* element = sends_.Next();
    if (element == nullptr || !MayTransmit(*element)) return;
    TransmitElement(*element);
  }
}

void SimQueuePair::Transmit(Frame frame) {
  World& world = around_.world;
  if (WireObserver* observer = world.observer()) observer->OnTransmit(Where(), frame);
  Record(StepKind::kTransmit, static_cast<uint64_t>(frame.kind), world.ContentOf(frame.payload));
  if (silent_) return;
  const bool news = IsNews(frame.kind);
  if (around_.host != nullptr && !news) return Carry(std::move(frame));
  Time arrival = world.Now() + world.DrawTrip(number_, frame.payload.size());
  if (news) arrival += world.DrawLateness(number_);
  // Only the news of the begin goes a way of its own.
  if (frame.kind != FrameKind::kReady) last_arrival_ = arrival = std::max(last_arrival_, arrival);
  world.Schedule(arrival, [peer = peer_, frame = std::move(frame)]() mutable {
    if (const auto queue_pair = peer.lock()) queue_pair->OnFrame(std::move(frame));
  });
}

// As Transmit, where the device and the link take their time.
void SimQueuePair::Carry(Frame frame) {
  const auto peer = peer_.lock();
  const Cargo cargo{.flow = number_,
                    .bytes = frame.payload.size(),
                    .answers = frame.kind == FrameKind::kReadResponse};
  around_.host->Carry(cargo, peer == nullptr ? nullptr : peer->around_.host,
                      [to = peer_, frame = std::move(frame)]() mutable {
                        if (const auto queue_pair = to.lock()) {
                          queue_pair->OnFrame(std::move(frame));
                        }
                      });
}

}  // namespace esdp::fabric::sim
