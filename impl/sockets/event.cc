#include "esdp/event.h"

#include "impl/sockets/errors.h"

namespace esdp {

const char* ToString(EventType type) {
  switch (type) {
    case EventType::kNone:
      return "none";
    case EventType::kConnect:
      return "connect";
    case EventType::kAccept:
      return "accept";
    case EventType::kSend:
      return "send";
    case EventType::kRecv:
      return "recv";
    case EventType::kSendV:
      return "sendv";
    case EventType::kRecvV:
      return "recvv";
    case EventType::kShutdown:
      return "shutdown";
    case EventType::kClose:
      return "close";
    case EventType::kUrgent:
      return "urgent";
    case EventType::kSuspend:
      return "suspend";
  }
  return "unknown";
}

absl::Status Event::status() const {
  if (ok()) return absl::OkStatus();
  return sockets::MakeError(kind, sockets::TextOf(detail));
}

}  // namespace esdp
