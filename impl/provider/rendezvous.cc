#include "impl/provider/rendezvous.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {
namespace {

absl::Status NoSuchListener() { return absl::NotFoundError("no such listener, or it was stopped"); }

}  // namespace

ConstBytes PrivateDataOf(const fabric::RendezvousEvent& event) {
  return ConstBytes(event.private_data)
      .first(std::min<size_t>(event.private_data_bytes, event.private_data.size()));
}

// --- listeners -----------------------------------------------------------------------------------

absl::StatusOr<ListenerId> Rendezvous::Listen(const Address& address, int backlog,
                                              const ConnectionOptions& options,
                                              const std::function<void(ListenerId)>& named) {
  backlog = std::max(backlog, 1);
  ESDP_ASSIGN_OR_RETURN(const fabric::ListenerId from_fabric, fabric_.Listen(address, backlog));
  const ListenerId id{listeners_.Insert({from_fabric, backlog, 0, options})};
  by_fabric_listener_[static_cast<uint64_t>(from_fabric)] = id;
  if (named) named(id);
  return id;
}

absl::StatusOr<Address> Rendezvous::ListenerAddress(ListenerId listener) {
  const Listener* found = listeners_.Find(static_cast<uint64_t>(listener));
  if (found == nullptr) return NoSuchListener();
  return fabric_.ListenerAddress(found->fabric_listener);
}

absl::Status Rendezvous::StopListening(ListenerId listener) {
  const Listener* found = listeners_.Find(static_cast<uint64_t>(listener));
  if (found == nullptr) return NoSuchListener();
  absl::Status status = fabric_.StopListening(found->fabric_listener);
  by_fabric_listener_.erase(static_cast<uint64_t>(found->fabric_listener));
  listeners_.Erase(static_cast<uint64_t>(listener));
  connections_.ForEach([&](Endpoint& endpoint) {
    if (!endpoint.connecting && endpoint.listener == listener && !endpoint.announced)
      endpoint.orphaned = true;
  });
  return status;
}

void Rendezvous::Taken(Endpoint& endpoint) {
  if (!std::exchange(endpoint.counted, false)) return;
  if (Listener* listener = listeners_.Find(static_cast<uint64_t>(endpoint.listener)))
    --listener->waiting;
}

// --- connections ---------------------------------------------------------------------------------

absl::StatusOr<ConnectionId> Rendezvous::Connect(const Address& local, const Address& peer,
                                                 const ConnectionOptions& options, Time deadline,
                                                 const std::function<void(ConnectionId)>& named) {
  ESDP_ASSIGN_OR_RETURN(Endpoint* const endpoint, Create(options, true, local, peer));
  endpoint->connect_deadline = deadline;
  if (named) named(endpoint->id);
  driver_.Feed(*endpoint, sdp::AskConnect{});
  driver_.Flush();
  const absl::Status& refused = endpoint->evidence.refused_call;
  if (endpoint->ended) {
    return MakeStatus(refused.ok() ? absl::StatusCode::kInternal : refused.code(),
                      driver_.RootCause(*endpoint, endpoint->cause).text);
  }
  endpoint->announced = true;
  return endpoint->id;
}

absl::StatusOr<Endpoint*> Rendezvous::Create(const ConnectionOptions& options, bool connecting,
                                             const Address& local, const Address& peer) {
  const fabric::Limits& limits = fabric_.limits();
  const bool remote_invalidate = remote_invalidate_ && limits.windows && limits.remote_invalidate;
  const Plan plan = MakePlan(options, limits, connecting, local, peer, remote_invalidate);
  auto endpoint = std::make_unique<Endpoint>(plan.core);
  endpoint->options = plan.queue_pair;
  endpoint->connecting = connecting;
  endpoint->local = local;
  endpoint->peer = peer;
  ESDP_ASSIGN_OR_RETURN(endpoint->queue_pair, fabric_.CreateQueuePair(plan.queue_pair));
  endpoint->exposures.Configure(endpoint->queue_pair, remote_invalidate);
  const fabric::QueuePairId queue_pair = endpoint->queue_pair;
  absl::Status opened = endpoint->pool.Open(fabric_, plan.pool);
  Endpoint* const added = opened.ok() ? connections_.Add(std::move(endpoint)) : nullptr;
  if (added != nullptr) {
    driver_.timers().Reserve(connections_.size());
    return added;
  }
  (void)fabric_.DestroyQueuePair(queue_pair);
  opened.Update(absl::ResourceExhaustedError("too many connections"));
  return opened;
}

// --- events --------------------------------------------------------------------------------------

void Rendezvous::OnEvent(const fabric::RendezvousEvent& event) {
  if (event.type == fabric::RendezvousType::kConnectRequest) return OnRequest(event);
  Endpoint* endpoint = connections_.Find(event.queue_pair);
  if (endpoint == nullptr || endpoint->ended) return;
  switch (event.type) {
    case fabric::RendezvousType::kConnectRequest:
      return;
    case fabric::RendezvousType::kEstablished:
      return OnEstablished(*endpoint, event);
    case fabric::RendezvousType::kConnectFailed:
      return OnConnectFailed(*endpoint, event);
    case fabric::RendezvousType::kDisconnected:
      return OnDisconnected(*endpoint, event);
  }
}

void Rendezvous::OnRequest(const fabric::RendezvousEvent& event) {
  const auto known = by_fabric_listener_.find(static_cast<uint64_t>(event.listener));
  if (known == by_fabric_listener_.end()) {
    Endpoint* returning = connections_.FindReturning(event.listener);
    if (returning != nullptr) return OnReturn(*returning, event);
    return Reject(event, "nobody listens any more");
  }
  Listener& listener = *listeners_.Find(static_cast<uint64_t>(known->second));
  if (listener.waiting >= listener.backlog) return Reject(event, "the listener's backlog is full");
  sdp::HelloArrived arrived;
  const sdp::wire::TransportAddresses addresses{static_cast<uint8_t>(event.peer.family),
                                                event.peer.port, event.peer.bytes,
                                                event.local.bytes};
  if (const auto error = sdp::wire::DecodeHello(PrivateDataOf(event), addresses, arrived.hello)) {
    return Reject(event, std::string("no Hello: ") + error->field + ": " + error->reason);
  }
  const absl::StatusOr<Endpoint*> created =
      Create(listener.options, false, event.local, event.peer);
  if (!created.ok()) return Reject(event, std::string(FromAbsl(created.status().message())));
  Endpoint& endpoint = **created;
  endpoint.request = event.request;
  endpoint.listener = known->second;
  endpoint.counted = true;
  ++listener.waiting;
  driver_.Feed(endpoint, arrived);
  driver_.Flush();
}

void Rendezvous::Reject(const fabric::RendezvousEvent& event, const std::string& why) {
  driver_.Say("a connection request from " + fabric::ToString(event.peer) + " is rejected: " + why);
  (void)fabric_.Reject(event.request, {});
}

void Rendezvous::OnEstablished(Endpoint& endpoint, const fabric::RendezvousEvent& event) {
  endpoint.ready = true;
  if (!endpoint.moved) {  // afterwards it keeps the names that its application knows
    endpoint.local = event.local;
    endpoint.peer = event.peer;
  }
  if (endpoint.disconnecting) return;  // its kDisconnected follows
  sdp::Established established;
  established.reads_out_max = event.initiator_depth;
  established.reads_in_max = event.responder_resources;
  established.addresses = {endpoint.local.port, endpoint.peer.port, endpoint.local.bytes,
                           endpoint.peer.bytes};
  if (endpoint.connecting) {
    sdp::wire::Message& hello_ack = established.hello_ack.emplace();
    if (const auto error = sdp::wire::DecodeHelloAck(PrivateDataOf(event), hello_ack)) {
      endpoint.evidence.message_field = error->field;
      return driver_.Feed(endpoint, sdp::HelloRefused{error->reason});
    }
  }
  driver_.Feed(endpoint, established);
}

void Rendezvous::OnConnectFailed(Endpoint& endpoint, const fabric::RendezvousEvent& event) {
  endpoint.evidence.cause = event.cause;
  endpoint.evidence.detail = event.detail;
  endpoint.broken = true;
  driver_.Feed(endpoint, sdp::ConnectFailed{});
}

void Rendezvous::OnDisconnected(Endpoint& endpoint, const fabric::RendezvousEvent& event) {
  endpoint.evidence.cause = event.cause;
  endpoint.evidence.detail = event.detail;
  driver_.FeedLoss(endpoint);
}

}  // namespace esdp::provider
