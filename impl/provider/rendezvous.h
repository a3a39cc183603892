#ifndef ESDP_IMPL_PROVIDER_RENDEZVOUS_H_
#define ESDP_IMPL_PROVIDER_RENDEZVOUS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/handle_table.h"
#include "impl/fabric/port.h"
#include "impl/provider/connections.h"
#include "impl/provider/driver.h"
#include "impl/provider/types.h"

namespace esdp::provider {

ConstBytes PrivateDataOf(const fabric::RendezvousEvent& event);

// Brings connections about: listeners, attempts to connect, and what the fabric reports of both.
//
//   Owns:     the listeners.
//   Threads:  the holder of the turn.
//   Blocks:   never.
//   Units:    instants on the fabric's clock.
//   Errors:   the fabric's own. An incoming request that is no SDP, or for which there is no room,
//   is rejected and logged;
//             the front end hears only of connections that carry data.
class Rendezvous {
 public:
  Rendezvous(fabric::Fabric& fabric, Driver& driver, Connections& connections)
      : fabric_(fabric), driver_(driver), connections_(connections) {}

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog,
                                    const ConnectionOptions& options,
                                    const std::function<void(ListenerId)>& named);
  absl::StatusOr<Address> ListenerAddress(ListenerId listener);
  absl::Status StopListening(ListenerId listener);
  absl::StatusOr<ConnectionId> Connect(const Address& local, const Address& peer,
                                       const ConnectionOptions& options, Time deadline,
                                       const std::function<void(ConnectionId)>& named);

  // resumption.cc: a port of ours where the peer of this connection may come back, until the
  // connection has been moved.
  absl::StatusOr<uint16_t> ListenForReturn(Endpoint& endpoint);
  void StopReturn(Endpoint& endpoint);

  void OnEvent(const fabric::RendezvousEvent& event);

  // The connection no longer counts against its listener's backlog.
  void Taken(Endpoint& endpoint);
  // From now on (and since no connection may promise otherwise) keys may be shown that a Send must
  // not invalidate.
  void ForbidRemoteInvalidate() { remote_invalidate_ = false; }

 private:
  struct Listener {
    fabric::ListenerId fabric_listener = fabric::ListenerId::kNone;
    int backlog = 1;
    int waiting = 0;  // half open, or not yet taken by the application
    ConnectionOptions options;
  };

  absl::StatusOr<Endpoint*> Create(const ConnectionOptions& options, bool connecting,
                                   const Address& local, const Address& peer);
  void OnRequest(const fabric::RendezvousEvent& event);
  // resumption.cc
  void OnReturn(Endpoint& endpoint, const fabric::RendezvousEvent& event);
  void OnEstablished(Endpoint& endpoint, const fabric::RendezvousEvent& event);
  void OnConnectFailed(Endpoint& endpoint, const fabric::RendezvousEvent& event);
  void OnDisconnected(Endpoint& endpoint, const fabric::RendezvousEvent& event);
  void Reject(const fabric::RendezvousEvent& event, const std::string& why);

  fabric::Fabric& fabric_;
  Driver& driver_;
  Connections& connections_;
  HandleTable<Listener> listeners_;
  absl::flat_hash_map<uint64_t, ListenerId> by_fabric_listener_;
  bool remote_invalidate_ = true;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_RENDEZVOUS_H_
