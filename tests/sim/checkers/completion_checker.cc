#include "tests/sim/checkers/completion_checker.h"

#include <algorithm>
#include <optional>

namespace esdp::simulation {
namespace {

bool IsSend(EventType type) { return type == EventType::kSend || type == EventType::kSendV; }
bool IsReceive(EventType type) { return type == EventType::kRecv || type == EventType::kRecvV; }

// In which order of a socket it has a turn.
std::optional<size_t> OrderOf(EventType type) {
  if (IsSend(type)) return 0;
  if (IsReceive(type)) return 1;
  if (type == EventType::kUrgent) return 2;
  return std::nullopt;
}

// Moved nothing and was taken back: it may overtake (rule 4).
bool MayOvertake(const Event& event) {
  return event.bytes == 0 &&
         (event.kind == ErrorKind::kCancelled || event.kind == ErrorKind::kDeadlineExceeded);
}

// What ends a connection, so that everything on it ends so (rule 7).
bool IsRootCause(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kLocalAbort:
    case ErrorKind::kPeerReset:
    case ErrorKind::kPeerSilent:
    case ErrorKind::kPeerProtocol:
    case ErrorKind::kRemoteAccess:
    case ErrorKind::kFabric:
    case ErrorKind::kInternal:
      return true;
    default:
      return false;
  }
}

}  // namespace

void CompletionChecker::OnPosted(OpId op, const Posted& posted) {
  if (!known_.emplace(op, false).second) {
    findings_->Add(name_ + ": the name of an operation was given twice");
    return;
  }
  live_[op] = posted;
  SocketRecord& socket = sockets_[posted.socket];
  if (const auto order = OrderOf(posted.type)) socket.order[*order].push_back(op);
}

void CompletionChecker::OnEvent(const Event& event) {
  const auto known = known_.find(event.op);
  if (known == known_.end()) return Find(event, "an event of an operation that was never accepted");
  if (known->second) return Find(event, "an event after the terminal one");
  const Posted posted = live_[event.op];
  if (event.type != posted.type) Find(event, "the event is of another type than the operation");
  if (event.socket != posted.socket) Find(event, "the event names another socket");
  if (sockets_[posted.socket].closed) Find(event, "an event after that of Close");
  if (event.kind == ErrorKind::kInternal) Find(event, "a fault of the library");
  if (event.ok() != (event.kind == ErrorKind::kNone)) Find(event, "code and kind disagree");
  if (!event.terminal()) {
    if (event.type != EventType::kAccept) Find(event, "more events than one");
    return;
  }
  known->second = true;
  live_.erase(event.op);
  CheckOrder(event, posted);
  CheckBytes(event, posted);
  if (event.type == EventType::kUrgent) CheckUrgent(event);
  CheckCause(event);
  if (event.type == EventType::kClose) sockets_[posted.socket].closed = true;
}

void CompletionChecker::CheckOrder(const Event& event, const Posted& posted) {
  const auto which = OrderOf(posted.type);
  if (!which) return;
  std::deque<OpId>& order = sockets_[posted.socket].order[*which];
  const auto found = std::find(order.begin(), order.end(), event.op);
  if (found == order.end()) return;
  if (found != order.begin() && !MayOvertake(event)) Find(event, "it overtakes an earlier one");
  order.erase(found);
}

void CompletionChecker::CheckBytes(const Event& event, const Posted& posted) {
  if (event.bytes > posted.length) Find(event, "more bytes than the operation has");
  if (event.bytes_zero_copy > event.bytes) Find(event, "more bytes by RDMA than in all");
  if (!event.ok()) return;
  if (IsSend(posted.type) && event.bytes != posted.length) Find(event, "a send that is not whole");
  if (!IsReceive(posted.type)) return;
  SocketRecord& socket = sockets_[posted.socket];
  if (socket.ended && (!event.eof() || event.bytes != 0)) {
    Find(event, "a receive after the end of the stream has not the same answer");
  }
  if (event.eof()) {
    socket.ended = true;
  } else if (event.bytes == 0 && posted.length > 0) {
    Find(event, "a receive of nothing");
  } else if (posted.wait_all && event.bytes != posted.length && (event.flags & kUrgent) == 0) {
    Find(event, "a receive that was to be filled is not");
  }
}

// One that finds nothing more to come says so, and then all that follow do.
void CompletionChecker::CheckUrgent(const Event& event) {
  SocketRecord& socket = sockets_[event.socket];
  if (!event.ok()) return;
  if (socket.urgent_ended && !event.eof()) Find(event, "an urgent byte after the last one");
  if (event.eof()) socket.urgent_ended = true;
  if (event.eof() == ((event.flags & kUrgent) != 0)) Find(event, "an urgent byte and none");
}

void CompletionChecker::CheckCause(const Event& event) {
  if (!IsRootCause(event.kind) || event.type == EventType::kConnect) return;
  SocketRecord& socket = sockets_[event.socket];
  if (socket.root == ErrorKind::kNone) socket.root = event.kind;
  if (socket.root != event.kind) {
    Find(event, std::string("another cause than the first one, ") + ToString(socket.root));
  }
}

std::string CompletionChecker::Describe() const {
  std::string text;
  for (const auto& [op, posted] : live_) {
    text += std::string(text.empty() ? "" : ", ") + ToString(posted.type) + " of " +
            std::to_string(posted.length) + " bytes on socket " +
            std::to_string(static_cast<uint64_t>(posted.socket));
  }
  return text;
}

void CompletionChecker::Finish() {
  if (!live_.empty()) findings_->Add(name_ + ": operations without an end: " + Describe());
}

void CompletionChecker::Find(const Event& event, const std::string& what) {
  findings_->Add(name_ + ": " + ToString(event.type) + " " +
                 std::to_string(static_cast<uint64_t>(event.op)) + " of " +
                 std::to_string(event.bytes) + " bytes (" + ToString(event.kind) + "): " + what);
}

}  // namespace esdp::simulation
