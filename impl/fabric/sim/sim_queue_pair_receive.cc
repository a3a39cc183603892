// What arrives from the peer.

#include <utility>

#include "impl/fabric/sim/sim_queue_pair.h"

namespace esdp::fabric::sim {
namespace {

constexpr size_t kLentMin = 2048;

}  // namespace

void SimQueuePair::OnFrame(Frame frame) {
  if (state_ == State::kEnded || silent_) return;
  Record(StepKind::kArrive, static_cast<uint64_t>(frame.kind), frame.number);
  if (WireObserver* observer = around_.world.observer()) observer->OnArrive(Where(), frame);
  if (state_ == State::kAccepting) BecomeReady({});
  switch (frame.kind) {
    case FrameKind::kReady:
      break;
    case FrameKind::kSend:
    case FrameKind::kWrite:
    case FrameKind::kReadRequest:
      if (state_ == State::kReady) OnRequestFrame(std::move(frame));
      break;
    case FrameKind::kReadResponse:
      OnReadResponse(frame);
      break;
    case FrameKind::kAcknowledge:
      sends_.Acknowledge(frame.number);
      break;
    case FrameKind::kTerminate:
      OnTerminate(frame);
      break;
    case FrameKind::kFinish:
      OnFinish();
      break;
    case FrameKind::kFinishAnswer:
      End(Cause::kLocalDisconnect, "");
      break;
    case FrameKind::kReset:
      End(Cause::kPeerReset, "the peer broke the connection off");
      break;
  }
}

bool SimQueuePair::WaitsForReceive(const Frame& frame) const {
  return frame.kind == FrameKind::kSend && receives_.empty() &&
         !around_.limits.initiator_speaks_first;
}

// InfiniBand family: the adapter itself may not be ready, and the message comes again.
bool SimQueuePair::ComesAgain(const Frame& frame) {
  World& world = around_.world;
  if (frame.kind != FrameKind::kSend || around_.limits.initiator_speaks_first) return false;
  if (!world.Strikes(FaultKind::kNotReady, world.faults().not_ready, number_)) return false;
  world.Schedule(world.Now() + world.DrawUpTo(world.faults().not_ready_max),
                 [weak = weak_from_this()] {
                   if (const auto self = weak.lock()) self->RunWaiting();
                 });
  return true;
}

void SimQueuePair::OnRequestFrame(Frame frame) {
  if (!waiting_.empty() || WaitsForReceive(frame) || ComesAgain(frame)) {
    Record(StepKind::kWait, frame.number);
    waiting_.push_back(std::move(frame));
    return;
  }
  if (frame.kind == FrameKind::kSend) OnSend(frame);
  if (frame.kind == FrameKind::kWrite) OnWrite(frame);
  if (frame.kind == FrameKind::kReadRequest) OnReadRequest(frame);
}

void SimQueuePair::RunWaiting() {
  std::deque<Frame> waiting = std::exchange(waiting_, {});
  for (Frame& frame : waiting) {
    if (state_ == State::kReady) OnRequestFrame(std::move(frame));
  }
}

void SimQueuePair::OnSend(const Frame& frame) {
  if (receives_.empty()) {
    Refuse(frame, WorkStatus::kReceiverNotReady, Cause::kProtocol,
           "a message arrived and no receive was posted");
    return;
  }
  if (frame.payload.size() > receives_.FrontLength()) {
    Refuse(frame, WorkStatus::kRemoteOperation, Cause::kProtocol,
           "a message is longer than its receive");
    return;
  }
  const uint64_t written =
      frame.has_key ? around_.regions.Written(id_, frame.key) : kWrittenUnknown;
  if (frame.has_key && around_.regions.Invalidate(id_, frame.key) != soft::TagError::kNone) {
    Refuse(frame, WorkStatus::kRemoteAccess, Cause::kLocalAccess,
           "a message invalidates a key that is no live window");
    return;
  }
  may_send_ = true;
  Record(StepKind::kComplete, frame.payload.size(), around_.world.ContentOf(frame.payload));
  // Of those that are long every other one, so that users meet both.
  const bool lends = lend_messages_ && frame.number % 2 != 0 && frame.payload.size() >= kLentMin;
  receives_.Fill(frame.payload, frame.has_key ? &frame.key : nullptr, written,
                 lends ? around_.lent_messages.Lend(id_, frame.payload) : nullptr);
  Acknowledge(frame.number);
}

std::byte* SimQueuePair::Reach(const Frame& frame, uint64_t length, soft::TagRight right) const {
  return around_.regions.Resolve(id_, frame.remote.key, frame.remote.address, length, right).data;
}

void SimQueuePair::OnWrite(const Frame& frame) {
  std::byte* target = Reach(frame, frame.payload.size(), soft::TagRight::kWrite);
  if (target == nullptr) {
    Refuse(frame, WorkStatus::kRemoteAccess, Cause::kLocalAccess,
           "the peer wrote where it was not shown memory");
    return;
  }
  ShowTouch(target, frame.payload.size(), Touch::kRemoteWrite);
  CopyBytes(Bytes(target, frame.payload.size()), frame.payload);
  around_.regions.NoteWritten(frame.remote.key, frame.remote.address, frame.payload.size());
  Acknowledge(frame.number);
}

void SimQueuePair::OnReadRequest(const Frame& frame) {
  const std::byte* source = Reach(frame, frame.length, soft::TagRight::kRead);
  if (source == nullptr) {
    Refuse(frame, WorkStatus::kRemoteAccess, Cause::kLocalAccess,
           "the peer read where it was not shown memory");
    return;
  }
  ShowTouch(source, frame.length, Touch::kRemoteRead);
  Frame response{.kind = FrameKind::kReadResponse, .number = frame.number};
  response.payload.assign(source, source + frame.length);
  Transmit(std::move(response));
}

void SimQueuePair::OnReadResponse(const Frame& frame) {
  const SendElement* element = sends_.Find(frame.number);
  if (element == nullptr) return;
  for (const ScatterEntry& entry : element->entries) {
    ShowTouch(entry.address, entry.length, Touch::kReadTarget);
  }
  Scatter(element->entries, frame.payload);
  --reads_in_flight_;
  // A response says that all before it was carried out; an acknowledgement of its own may still be
  // on the way.
  sends_.Acknowledge(frame.number);
  sends_.Finish(frame.number, WorkStatus::kSuccess);
  if (sends_.Next() != nullptr) ScheduleTurn();
}

void SimQueuePair::ShowTouch(const std::byte* address, uint64_t length, Touch touch) const {
  if (WireObserver* observer = around_.world.observer()) {
    observer->OnTouch(Where(), address, length, touch);
  }
}

void SimQueuePair::OnTerminate(const Frame& frame) {
  sends_.Finish(frame.number, frame.status);
  End(Cause::kRemoteTerminate, "it has refused what was asked of it");
}

void SimQueuePair::OnFinish() {
  const bool we_asked = state_ == State::kClosing;
  Transmit({.kind = FrameKind::kFinishAnswer});
  End(we_asked ? Cause::kLocalDisconnect : Cause::kPeerDisconnect, "");
}

void SimQueuePair::Acknowledge(uint64_t number) {
  if (around_.limits.initiator_speaks_first) return;
  Transmit({.kind = FrameKind::kAcknowledge, .number = number});
}

void SimQueuePair::Refuse(const Frame& frame, WorkStatus status, Cause cause, const char* detail) {
  Transmit({.kind = FrameKind::kTerminate, .number = frame.number, .status = status});
  End(cause, detail);
}

}  // namespace esdp::fabric::sim
