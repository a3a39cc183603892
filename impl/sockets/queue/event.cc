#include "esdp/event.h"

#include <new>
#include <string>

#include "impl/base/made_once.h"
#include "impl/sockets/context/failure_texts.h"
#include "impl/sockets/context/fork_epoch.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_text.h"

namespace esdp {
namespace sockets {
namespace {

constexpr std::string_view kPeer = "\1";  // stands for the event's peer

constinit MadeOnce<FailureTexts> texts;

FailureTexts& AllTexts() { return texts.Get(); }

const HeldInForks held(AllTexts().mutex());

void ReplaceAll(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
    at += with.size();
  }
}

std::string TextOf(const Event& event) {
  std::string text = AllTexts().Of(event.detail);
  if (event.accepted_peer.port() == 0) return text;
  const std::string peer = event.accepted_peer.ToString();
  if (text.empty()) return "connection with " + peer + ": " + ToString(event.kind);
  ReplaceAll(text, kPeer, peer);
  return text;
}

}  // namespace

void SetText(Event& event, std::string_view text, const Address& peer) try {
  std::string kept(text);
  if (peer.port() != 0 && kept.find(kPeer) == std::string::npos) {
    const std::string name = peer.ToString();
    if (kept.find(name) != std::string::npos) event.accepted_peer = peer;
    ReplaceAll(kept, name, kPeer);
  }
  event.detail = AllTexts().Keep(kept);
} catch (const std::bad_alloc&) {
  event.detail = 0;
}

}  // namespace sockets

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
    case EventType::kPoll:
      return "poll";
    case EventType::kSendFile:
      return "sendfile";
    case EventType::kRecvFile:
      return "recvfile";
  }
  return "unknown";
}

absl::Status Event::status() const {
  if (ok()) return absl::OkStatus();
  return sockets::OrNoMemory(
      [&]() -> absl::Status { return sockets::MakeError(kind, sockets::TextOf(*this)); });
}

}  // namespace esdp
