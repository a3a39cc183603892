#include "impl/fabric/types.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace esdp::fabric {

std::string ToString(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  const std::string port = ":" + std::to_string(address.port);
  if (address.family == Family::kIpv4) {
    inet_ntop(AF_INET, address.bytes.data() + 12, text, sizeof(text));
    return text + port;
  }
  inet_ntop(AF_INET6, address.bytes.data(), text, sizeof(text));
  const std::string scope = address.scope_id == 0 ? "" : "%" + std::to_string(address.scope_id);
  return "[" + (text + scope) + "]" + port;
}

bool IsWildcard(const Address& address) {
  return std::all_of(address.bytes.begin(), address.bytes.end(),
                     [](uint8_t byte) { return byte == 0; });
}

const char* ToString(WorkStatus status) {
  switch (status) {
    case WorkStatus::kSuccess:
      return "success";
    case WorkStatus::kFlushed:
      return "flushed: the queue pair left the ready state";
    case WorkStatus::kLocalProtection:
      return "local protection: a region, range or right of this side does not fit";
    case WorkStatus::kRemoteAccess:
      return "remote access: the peer refused the key, range or right";
    case WorkStatus::kRemoteOperation:
      return "remote operation: the peer could not carry it out";
    case WorkStatus::kReceiverNotReady:
      return "receiver not ready: the peer had no receive posted";
    case WorkStatus::kTransport:
      return "transport: the connection was lost or carried malformed frames";
  }
  return "unknown work status";
}

const char* ToString(Cause cause) {
  switch (cause) {
    case Cause::kNone:
      return "none";
    case Cause::kLocalDisconnect:
      return "disconnected by this side";
    case Cause::kPeerDisconnect:
      return "disconnected by the peer";
    case Cause::kPeerReset:
      return "broken off by the peer or the network";
    case Cause::kPeerSilent:
      return "the peer stopped answering";
    case Cause::kRejected:
      return "rejected by the peer's program";
    case Cause::kRefused:
      return "refused: nobody listens at that address";
    case Cause::kUnreachable:
      return "unreachable: no route to that address";
    case Cause::kTimedOut:
      return "timed out";
    case Cause::kProtocol:
      return "the peer broke the protocol";
    case Cause::kRemoteTerminate:
      return "the peer ended the stream with Terminate";
    case Cause::kLocalAccess:
      return "the peer asked for memory it was not shown";
    case Cause::kDevice:
      return "the fabric itself failed";
  }
  return "unknown cause";
}

}  // namespace esdp::fabric
