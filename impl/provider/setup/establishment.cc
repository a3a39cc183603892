#include "impl/provider/setup/establishment.h"

#include <array>
#include <string>
#include <utility>

#include "impl/base/bytes.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {
namespace {

// [R25.1] Whole where it fits. A Hello's compact form is its beginning [R2.6.2].
ConstBytes EncodeHello(const sdp::wire::Message& hello, const fabric::Fabric& fabric,
                       std::array<std::byte, sdp::wire::kHelloBytes>& bytes) {
  size_t length = sdp::wire::Encode(hello, 0, bytes);
  if (fabric.limits().private_data_max >= length) return ConstBytes(bytes).first(length);
  const auto& body = *std::get_if<sdp::wire::Hello>(&hello.body);
  if (body.return_token == sdp::wire::ReturnToken{}) {
    return ConstBytes(bytes).first(sdp::wire::kCompactHelloBytes);
  }
  constexpr size_t kTail = sdp::wire::kCompactHelloTokenBytes - sdp::wire::kCompactHelloBytes;
  CopyBytes(Bytes(bytes).subspan(sdp::wire::kCompactHelloBytes, kTail),
            ConstBytes(bytes).subspan(sdp::wire::kHelloAddressesEnd, kTail));
  return ConstBytes(bytes).first(sdp::wire::kCompactHelloTokenBytes);
}

}  // namespace

void Establishment::Start(Endpoint& endpoint, const sdp::StartConnect& action) {
  driver_.Flush();
  endpoint.connecting = true;
  Address local = endpoint.local;
  Address peer = endpoint.peer;
  sdp::wire::Message hello = action.hello;
  absl::Status status;
  if (action.port) {
    if (endpoint.phase != QueuePairPhase::kFailed && !connections_.BeginMove(endpoint)) {
      Move(endpoint.phase, QueuePairCue::kFailed);
      endpoint.evidence.NoteRefusal(
          absl::ResourceExhaustedError("too many connections are being moved by their peers"));
    }
    // The old port may still be in use, perhaps by a listener: the Hello alone has it.
    local.port = 0;
    peer.port = *action.port;
  } else if (endpoint.phase != QueuePairPhase::kFailed) {
    status = NameLocalPort(endpoint, local, hello);
  }
  std::array<std::byte, sdp::wire::kHelloBytes> bytes{};
  const ConstBytes encoded = EncodeHello(hello, *endpoint.fabric, bytes);
  if (endpoint.phase != QueuePairPhase::kFailed) {
    if (status.ok()) {
      status = endpoint.fabric->Connect(endpoint.queue_pair, local, peer, encoded,
                                        endpoint.connect_deadline);
    }
    if (status.ok()) return;
    endpoint.evidence.NoteRefusal(status);
  }
  Move(endpoint.phase, QueuePairCue::kFailed);
  if (endpoint.attempt && endpoint.attempt->has_next) return;  // another fabric is tried
  driver_.Answer(sdp::ConnectFailed{});
}

// The peer compares the Hello's port with the transport's, so it has to be known now. [R2.6.7]
// Where the transport tells it nothing it takes port and addresses from there.
absl::Status Establishment::NameLocalPort(const Endpoint& endpoint, Address& local,
                                          sdp::wire::Message& hello) {
  local.family = endpoint.peer.family;
  const absl::StatusOr<Address> reserved =
      endpoint.fabric->ReserveAddress(endpoint.queue_pair, local, endpoint.peer);
  if (absl::IsUnimplemented(reserved.status())) return absl::OkStatus();
  if (!reserved.ok()) return reserved.status();
  local = *reserved;
  sdp::wire::Hello& named = std::get<sdp::wire::Hello>(hello.body);
  named.local_port = local.port;
  named.source_address = local.bytes;
  return absl::OkStatus();
}

void Establishment::Accept(Endpoint& endpoint, const sdp::AcceptConnection& action) {
  driver_.Flush();
  std::array<std::byte, sdp::wire::kHelloAckBytes> hello_ack{};
  const size_t bytes = sdp::wire::Encode(action.hello_ack, 0, hello_ack);
  if (endpoint.phase != QueuePairPhase::kFailed) {
    // Without memory it throws, and the request is rejected with the connection's end.
    const absl::Status status = endpoint.fabric->Accept(endpoint.request, endpoint.queue_pair,
                                                        ConstBytes(hello_ack).first(bytes));
    if (status.ok()) {
      endpoint.request = fabric::RequestId::kNone;
      return;
    }
    endpoint.evidence.NoteRefusal(status);
  }
  Move(endpoint.phase, QueuePairCue::kFailed);
  (void)endpoint.fabric->Reject(std::exchange(endpoint.request, fabric::RequestId::kNone), {});
  driver_.Answer(sdp::ConnectFailed{});
}

void Establishment::Reject(Endpoint& endpoint, const sdp::RejectConnection& action) {
  if (endpoint.phase == QueuePairPhase::kAwaited) {
    driver_.WriteLog("the return of " + fabric::ToString(endpoint.peer) +
                     " is rejected: " + action.reason);
  } else if (*endpoint.reason == '\0') {
    endpoint.reason = action.reason;
  }
  (void)endpoint.fabric->Reject(std::exchange(endpoint.request, fabric::RequestId::kNone), {});
}

void Establishment::Replace(Endpoint& endpoint) {
  driver_.Flush();  // whatever is collected is the old one's
  (void)endpoint.fabric->DestroyQueuePair(endpoint.queue_pair);
  endpoint.evidence = {};
  endpoint.moved = true;
  Move(endpoint.phase, QueuePairCue::kReplaced);
  endpoint.connect_deadline = kTimeInfinite;  // the core has a bound of its own
  const auto queue_pair = endpoint.fabric->CreateQueuePair(endpoint.options);
  if (!queue_pair.ok()) {
    Move(endpoint.phase, QueuePairCue::kFailed);
    endpoint.evidence.NoteRefusal(queue_pair.status());
  }
  connections_.Rename(endpoint, queue_pair.value_or(fabric::QueuePairId::kNone));
  endpoint.exposures.Move(endpoint.queue_pair);
}

void Establishment::AwaitHello(Endpoint& endpoint) {
  Move(endpoint.phase, QueuePairCue::kPeerAwaited);
  endpoint.connecting = false;
  endpoint.evidence = {};
  if (!endpoint.early_return) return;
  endpoint.request = endpoint.early_return->request;
  driver_.Answer(sdp::HelloArrived{endpoint.early_return->hello});
  endpoint.early_return.reset();
}

// Whatever becomes of it, its queue pair is destroyed with the first word of it.
void Establishment::SayFarewell(Endpoint& endpoint, const sdp::Farewell& action) {
  fabric::Fabric& fabric = *endpoint.fabric;
  const auto queue_pair = fabric.CreateQueuePair(endpoint.options);
  if (!queue_pair.ok()) return;
  Address local = endpoint.local;
  local.port = 0;
  Address peer = endpoint.peer;
  peer.port = action.port;
  std::array<std::byte, sdp::wire::kHelloBytes> bytes{};
  const ConstBytes hello = EncodeHello(action.hello, fabric, bytes);
  if (fabric.Connect(*queue_pair, local, peer, hello, AddSaturating(driver_.now(), kFarewellWait))
          .ok()) {
    connections_.AddFarewell(endpoint.place, *queue_pair);
  } else {
    (void)fabric.DestroyQueuePair(*queue_pair);
  }
}

void Establishment::RejectRequest(Endpoint& endpoint) {
  if (endpoint.request == fabric::RequestId::kNone) return;
  (void)endpoint.fabric->Reject(std::exchange(endpoint.request, fabric::RequestId::kNone), {});
}

// Its fabric rejects what waits there.
void Establishment::StopReturn(Endpoint& endpoint) {
  if (endpoint.return_listener != fabric::ListenerId::kNone) {
    (void)endpoint.fabric->StopListening(
        std::exchange(endpoint.return_listener, fabric::ListenerId::kNone));
  }
  endpoint.early_return.reset();
}

}  // namespace esdp::provider
