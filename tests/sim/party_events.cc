// What a party does with its events.

#include <algorithm>
#include <utility>

#include "tests/sim/checkers/content.h"
#include "tests/sim/party.h"

namespace esdp::simulation {

void Party::OnEvent(const Event& event, Time now) {
  switch (event.type) {
    case EventType::kConnect:
      if (event.ok() && dropped_) return End();
      if (event.ok()) return;  // whoever runs us calls Begin
      if (!dropped_ && !around_.plan.starves() && !around_.plan.disturbs()) {
        around_.findings.Add(Describe() + ": no connection: " + event.status().ToString());
      }
      socket_ = {};
      return End();
    case EventType::kShutdown:
      shut_done_ = true;
      if (!event.ok()) failed_ = true;
      break;
    case EventType::kClose:
      NoteStats();
      socket_ = {};
      return End();
    default: {
      const auto found = operations_.find(event.op);
      if (found == operations_.end()) return;  // the checker of completions has said so
      Operation operation = std::move(found->second);
      operations_.erase(found);
      OnTransfer(operation, event);
      if (dropped_ && operations_.empty()) End();
    }
  }
  if (phase_ == Phase::kReading) next_ = std::min(next_, DrawRest(now, around_.plan.read_rest_max));
}

// Whether the event tells that the connection has ended, and not the operation alone.
bool Party::IsOfConnection(const Operation& operation, const Event& event) const {
  if (event.ok() || event.kind == ErrorKind::kCancelled ||
      event.kind == ErrorKind::kDeadlineExceeded) {
    return false;
  }
  const bool refused = event.kind == ErrorKind::kUnsupported || event.kind == ErrorKind::kShutDown;
  return operation.type != EventType::kSuspend || !refused;
}

void Party::OnTransfer(Operation& operation, const Event& event) {
  if (IsOfConnection(operation, event) && phase_ != Phase::kClosing) {
    failed_ = true;
    if (link_->died) around_.marks.Hit(std::string("a peer that died: ") + ToString(event.kind));
    if (!link_->excused()) {
      around_.findings.Add(Describe() + ": " + ToString(event.type) +
                           " fails though nothing has happened: " + event.status().ToString());
    }
  }
  if (operation.is_send()) {
    const bool left_out = event.bytes == 0 && (event.kind == ErrorKind::kCancelled ||
                                               event.kind == ErrorKind::kDeadlineExceeded);
    link_->streams[side_].SendEnded(operation.send_number, event.ok(), left_out,
                                    event.stream_offset);
  } else if (operation.is_receive()) {
    NoteReceived(operation, event);
  } else if (operation.type == EventType::kUrgent) {
    NoteUrgent(event);
  } else {
    around_.marks.Hit(event.ok() ? "a wish to suspend granted" : "a wish to suspend not granted");
  }
  for (const Piece& piece : operation.pieces) {
    around_.memory.TakeBack(piece.bytes);
    // The memory is ours again: who reads it now reads this.
    if (operation.is_send()) std::fill(piece.bytes.begin(), piece.bytes.end(), std::byte{0xdd});
  }
  GiveBack(operation);
}

void Party::NoteUrgent(const Event& event) {
  if (!event.ok()) return;
  StreamChecker& stream = link_->streams[1 - side_];
  if (event.eof()) return stream.UrgentEnded();
  around_.marks.Hit("an urgent byte told of");
  if (stream.UrgentTold()) around_.marks.Hit("an urgent byte told of before it came");
}

void Party::NoteReceived(const Operation& operation, const Event& event) {
  StreamChecker& stream = link_->streams[1 - side_];
  std::vector<std::byte> bytes;
  bytes.reserve(event.bytes);
  if (!operation.copy.empty()) {
    bytes.assign(operation.copy.begin(),
                 operation.copy.begin() + static_cast<ptrdiff_t>(event.bytes));
  }
  for (const Piece& piece : operation.pieces) {
    const size_t length = std::min<size_t>(piece.bytes.size(), event.bytes - bytes.size());
    bytes.insert(bytes.end(), piece.bytes.begin(),
                 piece.bytes.begin() + static_cast<ptrdiff_t>(length));
  }
  if (phase_ == Phase::kReading && around_.plan.read_rest_max > Duration::zero()) {
    around_.marks.Hit("a slow reader");
  }
  stream.Received(bytes, event.stream_offset, (event.flags & kUrgent) != 0);
  if (event.eof()) {
    end_seen_ = true;
    stream.EndOfStream();
  }
}

}  // namespace esdp::simulation
