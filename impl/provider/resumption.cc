#include <string>
#include <utility>

#include "impl/provider/rendezvous.h"
#include "impl/sdp/wire/codec.h"

// A suspended connection's peer comes back to a listener of its own, which takes nobody else (sdp
// wire protocol, section 12).

namespace esdp::provider {

absl::StatusOr<uint16_t> Rendezvous::ListenForReturn(Endpoint& endpoint) {
  if (endpoint.return_listener != fabric::ListenerId::kNone) {
    return absl::FailedPreconditionError("another move of the connection is under way");
  }
  Address address = endpoint.local;
  address.port = 0;
  const absl::StatusOr<fabric::ListenerId> listener = endpoint.fabric->Listen(address, 1);
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<Address> named = endpoint.fabric->ListenerAddress(*listener);
  if (!named.ok()) {
    (void)endpoint.fabric->StopListening(*listener);
    return named.status();
  }
  endpoint.return_listener = *listener;
  return named->port;
}

void Rendezvous::StopReturn(Endpoint& endpoint) {
  (void)endpoint.fabric->StopListening(
      std::exchange(endpoint.return_listener, fabric::ListenerId::kNone));
}

void Rendezvous::OnReturn(Endpoint& endpoint, const fabric::RendezvousEvent& event) {
  // It goes by the port it had before, whatever port this queue pair comes from.
  const sdp::wire::TransportAddresses addresses{static_cast<uint8_t>(event.peer.family),
                                                endpoint.peer.port, event.peer.bytes,
                                                event.local.bytes};
  sdp::HelloArrived arrived;
  if (const auto error = sdp::wire::DecodeHello(PrivateDataOf(event), addresses, arrived.hello)) {
    return Reject(endpoint.place, event,
                  std::string("no Hello: ") + error->field + ": " + error->reason);
  }
  if (event.peer.bytes != endpoint.peer.bytes)
    return Reject(endpoint.place, event, "not from the peer's address");
  if (const char* refusal = endpoint.core.CheckResumption(arrived.hello)) {
    return Reject(endpoint.place, event, refusal);
  }
  if (endpoint.awaits_hello) {
    endpoint.request = event.request;
    driver_.Feed(endpoint, arrived);
    return driver_.Flush();
  }
  // The old queue pair is not gone yet, and what it has delivered perhaps not polled; or the peer
  // is there already.
  const sdp::Phase phase = endpoint.core.phase();
  const bool early = phase == sdp::Phase::kSuspending || phase == sdp::Phase::kSuspended;
  if (!early || endpoint.early_return)
    return Reject(endpoint.place, event, "the connection has its new peer");
  endpoint.early_return = {event.request, arrived.hello};
}

}  // namespace esdp::provider
