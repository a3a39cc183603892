#include "tools/esdp_diag/attempt.h"

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace esdp_diag {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

// The section of docs/troubleshooting.md for an error.
std::string TroubleOf(esdp::ErrorKind kind) {
  switch (kind) {
    case esdp::ErrorKind::kRefused:
      return "refused";
    case esdp::ErrorKind::kRejected:
    case esdp::ErrorKind::kHandshakeRefused:
    case esdp::ErrorKind::kPeerReset:
    case esdp::ErrorKind::kPeerProtocol:
      return "not-sdp";
    case esdp::ErrorKind::kUnreachable:
      return "no-route";
    case esdp::ErrorKind::kDeadlineExceeded:
      return "firewall";
    case esdp::ErrorKind::kPeerSilent:
      return "silent";
    case esdp::ErrorKind::kMemory:
      return "memlock";
    case esdp::ErrorKind::kFabric:
      return "no-device";
    default:
      return "";
  }
}

Attempt Failed(const absl::Status& status) {
  const esdp::ErrorKind kind = esdp::KindOf(status);
  return {false, std::string(esdp::ToString(kind)) + ": " + std::string(status.message()),
          TroubleOf(kind)};
}

}  // namespace

Attempt TryToConnect(const std::string& fabric, const esdp::Address& address) {
  auto context = esdp::Context::Open({.fabric = fabric});
  if (!context.ok()) return Failed(context.status());
  auto queue = context->CreateQueue({});
  if (!queue.ok()) return Failed(queue.status());
  auto socket = context->CreateSocket(address.family());
  if (!socket.ok()) return Failed(socket.status());
  const auto op =
      socket->Connect(address, {.queue = *queue, .deadline = context->Now() + kPatience});
  if (!op.ok()) return Failed(op.status());
  esdp::Event event;
  const auto count = queue->Dequeue(absl::MakeSpan(&event, 1));
  if (!count.ok()) return Failed(count.status());
  if (!event.ok()) return Failed(event.status());
  return {true,
          std::string("connected over ") + esdp::ToString(socket->transport()) + ", from " +
              socket->local().ToString(),
          ""};
}

}  // namespace esdp_diag
