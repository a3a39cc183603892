#ifndef ESDP_IMPL_FABRIC_SIM_HANDSHAKE_H_
#define ESDP_IMPL_FABRIC_SIM_HANDSHAKE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/fabric/sim/address_book.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

class SimQueuePair;

// One connection attempt, known to both sides while it lasts.
struct Handshake {
  std::weak_ptr<SimQueuePair> initiator;
  std::weak_ptr<ListenerOwner> owner;    // from the request's arrival on
  std::weak_ptr<SimQueuePair> acceptor;  // from Accept on
  Address initiator_address;
  Address listener_address;
  uint32_t initiator_depth = 0;  // as the connecting side asks
  uint32_t responder_resources = 0;
  std::vector<std::byte> private_data;
};

// What comes back. kNone: accepted, and the depths are the negotiated ones from the connecting
// side's point of view.
struct Answer {
  Cause cause = Cause::kNone;
  std::weak_ptr<SimQueuePair> acceptor{};
  uint32_t initiator_depth = 0;
  uint32_t responder_resources = 0;
  std::vector<std::byte> private_data{};
};

// Copies private data into an event; there are at most kPrivateDataMax bytes.
inline void SetPrivateData(RendezvousEvent& event, const std::vector<std::byte>& data) {
  event.private_data_bytes = static_cast<uint16_t>(data.size());
  CopyBytes(Bytes(event.private_data).first(data.size()), data);
}

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_HANDSHAKE_H_
