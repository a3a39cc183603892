#include "impl/provider/setup/rendezvous.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/base/undo.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {

ConstBytes PrivateDataOf(const fabric::RendezvousEvent& event) {
  return ConstBytes(event.private_data)
      .first(std::min<size_t>(event.private_data_bytes, event.private_data.size()));
}

// --- connections ---------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Endpoint>> Rendezvous::Make(const ConnectionOptions& options,
                                                           bool connecting, const Address& local,
                                                           const Address& peer, uint8_t place) {
  fabric::Fabric& fabric = *fabrics_[place];
  const fabric::Limits& limits = fabric.limits();
  const bool remote_invalidate = remote_invalidate_ && limits.windows && limits.remote_invalidate;
  Plan plan = MakePlan(options, limits, connecting, local, peer, remote_invalidate);
  if (!connecting) plan.core.return_token = NewReturnToken(limits.virtual_time);
  auto endpoint = std::make_unique<Endpoint>(plan.core);
  endpoint->fabric = &fabric;
  endpoint->place = place;
  endpoint->options = plan.queue_pair;
  endpoint->connecting = connecting;
  endpoint->local = local;
  endpoint->peer = peer;
  ESDP_ASSIGN_OR_RETURN(endpoint->queue_pair, fabric.CreateQueuePair(plan.queue_pair));
  endpoint->exposures.Configure(endpoint->queue_pair, remote_invalidate);
  Undo undo([&, queue_pair = endpoint->queue_pair] { (void)fabric.DestroyQueuePair(queue_pair); });
  ESDP_RETURN_IF_ERROR(endpoint->pool.Open(fabric, plan.pool));
  undo.Cancel();
  return endpoint;
}

absl::StatusOr<Endpoint*> Rendezvous::Add(std::unique_ptr<Endpoint> endpoint) {
  fabric::Fabric& fabric = *endpoint->fabric;
  const fabric::QueuePairId queue_pair = endpoint->queue_pair;
  Undo undo([&] {
    (void)endpoint->pool.Close(fabric);
    (void)fabric.DestroyQueuePair(queue_pair);
  });
  // All that its end takes, too.
  const size_t connections = connections_.size() + 1;
  driver_.timers().Reserve(connections);
  driver_.ReserveEnded(connections);
  connections_.ReserveOne(endpoint->place);
  undo.Cancel();
  Endpoint* const added = connections_.Add(std::move(endpoint));
  if (added == nullptr) {
    (void)fabric.DestroyQueuePair(queue_pair);
    return absl::ResourceExhaustedError("too many connections");
  }
  return added;
}

// --- events --------------------------------------------------------------------------------------

void Rendezvous::OnEvent(uint8_t place, const fabric::RendezvousEvent& event) {
  if (event.type == fabric::RendezvousType::kConnectRequest) return OnRequest(place, event);
  if (event.type == fabric::RendezvousType::kShort) return OnShort();
  if (event.type == fabric::RendezvousType::kTurnedAway) return SayRejected(event, event.detail);
  Endpoint* endpoint = connections_.Find(place, event.queue_pair);
  if (endpoint == nullptr && connections_.TakeFarewell(place, event.queue_pair)) {
    (void)fabrics_[place]->DestroyQueuePair(event.queue_pair);
  }
  if (endpoint == nullptr || HasEnded(endpoint->visibility)) return;
  switch (event.type) {
    case fabric::RendezvousType::kConnectRequest:
    case fabric::RendezvousType::kTurnedAway:
    case fabric::RendezvousType::kShort:
      return;
    case fabric::RendezvousType::kEstablished:
      return OnEstablished(*endpoint, event);
    case fabric::RendezvousType::kConnectFailed:
      return OnConnectFailed(*endpoint, event);
    case fabric::RendezvousType::kDisconnected:
      return OnDisconnected(*endpoint, event);
  }
}

void Rendezvous::OnRequest(uint8_t place, const fabric::RendezvousEvent& event) {
  const auto known = by_fabric_listener_.find({place, static_cast<uint64_t>(event.listener)});
  if (known == by_fabric_listener_.end()) {
    Endpoint* returning = connections_.FindReturning(place, event.listener);
    if (returning != nullptr) return OnReturn(*returning, event);
    return Reject(place, event, "nobody listens any more");
  }
  const Listener& listener = *listeners_.Find(static_cast<uint64_t>(known->second));
  if (listener.waiting >= listener.backlog) return Reject(place, event, Rejection::kBacklog);
  sdp::HelloArrived arrived;
  const sdp::wire::TransportAddresses addresses{static_cast<uint8_t>(event.peer.family),
                                                event.peer.port, event.peer.bytes,
                                                event.local.bytes};
  if (const auto error = sdp::wire::DecodeHello(PrivateDataOf(event), addresses, arrived.hello)) {
    return Reject(place, event, std::string("no Hello: ") + error->field + ": " + error->reason);
  }
  // Who comes back does so to the port that was named for it; this one, too, if its peer has named
  // the port of a listener of ours.
  const auto& hello = *std::get_if<sdp::wire::Hello>(&arrived.hello.body);
  const bool has_token = (hello.capabilities & sdp::wire::kCapabilityReturnToken) != 0 &&
                         hello.return_token != sdp::wire::ReturnToken{};
  if (has_token || connections_.Follows(event.peer, hello.local_port)) {
    return Reject(place, event, "it comes back to a connection that does not wait here");
  }
  Admit(place, event, known->second, arrived);
}

void Rendezvous::Admit(uint8_t place, const fabric::RendezvousEvent& event, ListenerId listener_id,
                       const sdp::HelloArrived& hello) {
  const Listener& listener = *listeners_.Find(static_cast<uint64_t>(listener_id));
  const auto backlog = static_cast<uint32_t>(listener.backlog);
  const fabric::AddressKey address = fabric::KeyOf(event.peer);
  const Rejection refused = admission_.Enter(address, backlog, driver_.now());
  if (refused != Rejection::kNone) return Reject(place, event, refused);
  Undo leave([&] { admission_.Leave(address); });
  if (IsFull() && !DropHalfOpen("others want in")) {
    return Reject(place, event, Rejection::kConnections);
  }
  const uint64_t half_open = half_open_.Add(kNoHandle, event.peer, driver_.now());
  Undo undo([&] { half_open_.Remove(half_open); });
  if (half_open_.size() > std::max<size_t>(half_open_max_, backlog) &&
      !DropHalfOpen("others want in")) {
    return Reject(place, event, Rejection::kHalfOpen);
  }
  auto made = Make(listener.options, false, event.local, event.peer, place);
  const absl::StatusOr<Endpoint*> created =
      made.ok() ? Add(*std::move(made)) : absl::StatusOr<Endpoint*>(made.status());
  if (!created.ok()) return Reject(place, event, std::string(FromAbsl(created.status().message())));
  Endpoint& endpoint = **created;
  endpoint.request = event.request;
  endpoint.listener = listener_id;
  leave.Cancel();
  undo.Cancel();
  endpoint.admitted = address;
  half_open_.SetOwner(half_open, static_cast<uint64_t>(endpoint.id));
  endpoint.half_open = half_open;
  driver_.Feed(endpoint, hello);
  driver_.Flush();
}

bool Rendezvous::DropHalfOpen(const char* why) {
  const std::optional<uint64_t> chosen = half_open_.Choose(driver_.now());
  if (!chosen) return false;
  Endpoint& endpoint = *connections_.Find(ConnectionId{*chosen});
  half_open_.Remove(std::exchange(endpoint.half_open, kNoHandle));
  if (HasEnded(endpoint.visibility)) return true;
  endpoint.evidence.cause = fabric::Cause::kTimedOut;
  endpoint.evidence.detail = std::string("the peer has not completed its set-up, and ") + why;
  Move(endpoint.phase, QueuePairCue::kFailed);
  driver_.Feed(endpoint, sdp::ConnectFailed{});
  return true;
}

void Rendezvous::OnShort() {
  for (int i = 0; i < kDroppedWhenShort && DropHalfOpen("the system is short of descriptors");) ++i;
}

void Rendezvous::GiveUp(uint8_t place, const fabric::RendezvousEvent& event) {
  if (event.type == fabric::RendezvousType::kConnectRequest) {
    (void)fabrics_[place]->Reject(event.request, {});
  } else if (Endpoint* endpoint = connections_.Find(place, event.queue_pair)) {
    driver_.Condemn(*endpoint);
  }
}

void Rendezvous::SayRejected(const fabric::RendezvousEvent& event, const std::string& why) {
  driver_.WriteLog("a connection request from " + fabric::ToString(event.peer) +
                   " is rejected: " + why);
}

void Rendezvous::Reject(uint8_t place, const fabric::RendezvousEvent& event,
                        const std::string& why) {
  SayRejected(event, why);
  (void)fabrics_[place]->Reject(event.request, {});
}

void Rendezvous::Reject(uint8_t place, const fabric::RendezvousEvent& event, Rejection reason) {
  observer_.OnRejected(reason);
  SayRejected(event, ToText(reason));
  (void)fabrics_[place]->Reject(event.request, EncodeRejection(reason));
}

void Rendezvous::OnEstablished(Endpoint& endpoint, const fabric::RendezvousEvent& event) {
  if (!Move(endpoint.phase, QueuePairCue::kEstablished)) return;
  endpoint.attempt.reset();
  half_open_.Remove(std::exchange(endpoint.half_open, kNoHandle));
  connections_.EndMove(endpoint);
  Listener* const listener = listeners_.Find(static_cast<uint64_t>(endpoint.listener));
  if (!endpoint.moved && !endpoint.connecting && listener != nullptr) {
    endpoint.counted = true;
    ++listener->waiting;
  }
  if (!endpoint.moved) {  // afterwards it keeps the names that its application knows
    endpoint.local = event.local;
    endpoint.peer = event.peer;
  }
  if (endpoint.phase == QueuePairPhase::kEnding) return;  // its kDisconnected follows
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
  endpoint.evidence.rejection = DecodeRejection(PrivateDataOf(event));
  Move(endpoint.phase, QueuePairCue::kFailed);
  if (MayTryNext(endpoint, event.cause)) {
    Endpoint* const next = Next(endpoint);
    if (next != nullptr) (void)Begin(*next);
    return;
  }
  driver_.Feed(endpoint, sdp::ConnectFailed{});
}

void Rendezvous::OnDisconnected(Endpoint& endpoint, const fabric::RendezvousEvent& event) {
  endpoint.evidence.cause = event.cause;
  endpoint.evidence.detail = event.detail;
  driver_.FeedLoss(endpoint);
}

}  // namespace esdp::provider
