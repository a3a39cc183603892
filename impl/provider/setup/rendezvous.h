#ifndef ESDP_IMPL_PROVIDER_SETUP_RENDEZVOUS_H_
#define ESDP_IMPL_PROVIDER_SETUP_RENDEZVOUS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/handle_table.h"
#include "impl/base/secure_random.h"
#include "impl/fabric/address_key.h"
#include "impl/fabric/half_open.h"
#include "impl/fabric/port.h"
#include "impl/provider/observer.h"
#include "impl/provider/regions.h"
#include "impl/provider/rejection.h"
#include "impl/provider/session/connections.h"
#include "impl/provider/session/driver.h"
#include "impl/provider/setup/admission.h"
#include "impl/provider/types.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::provider {

ConstBytes PrivateDataOf(const fabric::RendezvousEvent& event);

// Brings connections about: listeners, attempts to connect, and what the fabric reports of both.
//
//   Owns:     the listeners.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    instants on the fabrics' clock.
//   Errors:   the fabrics' own. An incoming request that is no SDP, or for which there is no room,
//   is rejected and logged;
//             the front end hears only of connections that carry data.
class Rendezvous {
 public:
  Rendezvous(const Fabrics& fabrics, Driver& driver, Connections& connections, Observer& observer,
             const PeerBounds& bounds)
      : fabrics_(fabrics),
        driver_(driver),
        connections_(connections),
        observer_(observer),
        connections_max_(bounds.connections),
        half_open_max_(bounds.half_open),
        admission_(bounds) {}

  // On one port of every fabric that has the address. Where two share their ports and
  // what they speak, one of them listens.
  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog,
                                    const ConnectionOptions& options,
                                    const std::function<void(ListenerId)>& named);
  // For the one connection that this connected TCP socket is. The observer is told if it fails.
  absl::StatusOr<ListenerId> ListenOver(int descriptor, const ConnectionOptions& options,
                                        const std::function<void(ListenerId)>& named);
  absl::StatusOr<Address> ListenerAddress(ListenerId listener);
  // A connection may come to be here without a word of the fabric's descriptor.
  bool AwaitsOneThatIsThere(uint8_t place) const {
    return place < over_at_.size() && over_at_[place] > 0;
  }
  // The place of the first fabric that listens.
  uint8_t FabricOf(ListenerId listener) const;
  absl::Status StopListening(ListenerId listener);

  // Over the first fabric that leads to the peer. The next one is tried where there is
  // no path and nobody who listens, or no answer for a while; its name stays.
  absl::StatusOr<ConnectionId> Connect(const Address& local, const Address& peer,
                                       const ConnectionOptions& options, Time deadline,
                                       const std::function<void(ConnectionId)>& named);
  // Over a connected TCP socket, and nothing else.
  absl::StatusOr<ConnectionId> ConnectOver(int descriptor, const ConnectionOptions& options,
                                           Time deadline,
                                           const std::function<void(ConnectionId)>& named);

  // A port of ours where the peer of this connection may come back, until the
  // connection has been moved.
  absl::StatusOr<uint16_t> ListenForReturn(Session& session);
  // No operation has this name. It rings for those that are let wait for their rejection.
  static constexpr uint64_t kRejectAlarm = ~uint64_t{1};
  void RejectDue();

  // `place` is the fabric's.
  void OnEvent(uint8_t place, const fabric::RendezvousEvent& event);
  // There was no memory for what the event asks for: it costs the one connection.
  void GiveUp(uint8_t place, const fabric::RendezvousEvent& event);

  // The connection no longer counts against its listener's backlog.
  void ReleaseBacklogSlot(Session& session);
  // Nor for anything else.
  void Ended(Session& session);
  // From now on (and since no connection may promise otherwise) keys may be shown that a Send must
  // not invalidate.
  void ForbidRemoteInvalidate() { remote_invalidate_ = false; }

 private:
  struct Listener {
    std::vector<fabric::ListenerId> at;  // by the place of the fabric; kNone where it does not
    int backlog = 1;
    int waiting = 0;  // not yet taken by the application
    ConnectionOptions options;
    bool over = false;  // a connection that was there: there will be no other
  };

  static constexpr int kDroppedWhenShort = 32;

  using ListenerAt = std::pair<uint8_t, uint64_t>;  // a fabric's place, and its own name

  // listeners.cc
  absl::StatusOr<std::vector<fabric::ListenerId>> ListenOnOnePort(const Address& address,
                                                                  int backlog);
  // The same; where the address names no port, until there is one that all of them have free.
  absl::StatusOr<std::vector<fabric::ListenerId>> ListenOnAFreePort(const Address& address,
                                                                    int backlog);
  absl::Status Follow(const Address& address, int backlog, std::vector<fabric::ListenerId>& at);
  void StopAt(const std::vector<fabric::ListenerId>& at);

  void OnTurnedAway(uint8_t place, const fabric::RendezvousEvent& event);
  // Tells so where the event is of a listener over a connection.
  void FailOver(uint8_t place, const fabric::RendezvousEvent& event, const Failure& failure);

  // attempts.cc
  // The first fabric that takes connected TCP sockets.
  absl::StatusOr<uint8_t> PlaceOverTcp() const;
  absl::StatusOr<ConnectionId> Try(Attempt&& wishes, const Address& peer, uint8_t place,
                                   const std::function<void(ConnectionId)>& named);
  Session& Begin(Session& first);
  // Where the fabric says so of an attempt, another one may lead to the peer.
  static bool MeansNoPath(fabric::Cause cause);
  static bool MayTryNext(const Session& session, fabric::Cause cause);
  Session* Next(Session& session);

  absl::StatusOr<std::unique_ptr<Session>> Make(const ConnectionOptions& options, bool connecting,
                                                const Address& local, const Address& peer,
                                                uint8_t place, bool any_fabric);
  absl::StatusOr<Session*> Add(std::unique_ptr<Session> session);
  void OnRequest(uint8_t place, const fabric::RendezvousEvent& event);
  void Admit(uint8_t place, const fabric::RendezvousEvent& event, ListenerId listener_id,
             const sdp::HelloArrived& hello);
  // Those that have ended and wait to be taken away are not there any more.
  bool IsFull() const { return connections_.size() - driver_.ended().size() >= connections_max_; }
  // Ends a set-up that has not come about; false: each may stay for now.
  bool DropHalfOpen(const char* why);
  void OnShort();
  // suspend.cc
  sdp::wire::ReturnToken NewReturnToken(bool virtual_time);
  void OnReturn(Session& session, uint8_t place, const fabric::RendezvousEvent& event);
  void RejectReturn(Session& session, uint8_t place, const fabric::RendezvousEvent& event,
                    const std::string& why);
  void RejectFirstReturn();
  void OnEstablished(Session& session, const fabric::RendezvousEvent& event);
  void OnConnectFailed(Session& session, const fabric::RendezvousEvent& event);
  void OnDisconnected(Session& session, const fabric::RendezvousEvent& event);
  void SayRejected(const fabric::RendezvousEvent& event, const std::string& why);
  void Reject(uint8_t place, const fabric::RendezvousEvent& event, const std::string& why);
  void Reject(uint8_t place, const fabric::RendezvousEvent& event, Rejection reason);

  const Fabrics& fabrics_;
  Driver& driver_;
  Connections& connections_;
  Observer& observer_;
  HandleTable<Listener> listeners_;
  std::map<ListenerAt, ListenerId> by_fabric_listener_;
  std::vector<uint32_t> over_at_;  // listeners over a connection, by the place
  const size_t connections_max_;
  const size_t half_open_max_;
  Admission admission_;
  fabric::HalfOpen half_open_;
  struct WrongReturn {
    Time reject_at{};
    uint8_t place = 0;
    fabric::RequestId request = fabric::RequestId::kNone;
  };
  std::deque<WrongReturn> wrong_returns_;
  SecureRandom random_;
  uint64_t tokens_ = 0;  // given in virtual time
  bool remote_invalidate_ = true;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SETUP_RENDEZVOUS_H_
