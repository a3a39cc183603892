#include "impl/provider/setup/rendezvous.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/base/undo.h"
#include "impl/provider/setup/plan.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {

ConstBytes PrivateDataOf(const fabric::RendezvousEvent& event) {
  return ConstBytes(event.private_data)
      .first(std::min<size_t>(event.private_data_bytes, event.private_data.size()));
}

// --- connections ---------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Session>> Rendezvous::Make(const ConnectionOptions& options,
                                                          bool connecting, const Address& local,
                                                          const Address& peer, uint8_t place,
                                                          bool any_fabric) {
  fabric::Fabric& fabric = *fabrics_[place];
  const fabric::Limits limits = any_fabric ? LimitsOfAll(fabrics_, place) : fabric.limits();
  const bool remote_invalidate = remote_invalidate_ && limits.windows && limits.remote_invalidate;
  Plan plan = MakePlan(options, limits, connecting, local, peer, remote_invalidate);
  if (!connecting) plan.core.return_token = NewReturnToken(limits.virtual_time);
  auto session = std::make_unique<Session>(plan.core);
  session->connecting = connecting;
  session->any_fabric = any_fabric;
  session->next_place = place;
  session->local = local;
  session->peer = peer;
  ESDP_RETURN_IF_ERROR(
      session->transport.Open(fabric, place, plan.transport, connections_.spare_mappings()));
  return session;
}

absl::StatusOr<Session*> Rendezvous::Add(std::unique_ptr<Session> session) {
  fabric::Fabric& fabric = session->transport.fabric();
  const fabric::QueuePairId queue_pair = session->transport.queue_pair();
  Undo undo([&] {
    (void)session->transport.Release();
    session->transport.DestroyQueuePair();
  });
  // All that its end takes, too.
  const size_t connections = connections_.size() + 1;
  driver_.timers().Reserve(connections);
  driver_.ReserveEnded(connections);
  connections_.ReserveOne(session->transport.place());
  undo.Cancel();
  Session* const added = connections_.Add(std::move(session));
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
  if (event.type == fabric::RendezvousType::kTurnedAway) return OnTurnedAway(place, event);
  Session* session = connections_.Find(place, event.queue_pair);
  if (session == nullptr && connections_.TakeFarewell(place, event.queue_pair)) {
    (void)fabrics_[place]->DestroyQueuePair(event.queue_pair);
  }
  if (session == nullptr || HasEnded(session->visibility)) return;
  switch (event.type) {
    case fabric::RendezvousType::kConnectRequest:
    case fabric::RendezvousType::kTurnedAway:
    case fabric::RendezvousType::kShort:
      return;
    case fabric::RendezvousType::kEstablished:
      return OnEstablished(*session, event);
    case fabric::RendezvousType::kConnectFailed:
      return OnConnectFailed(*session, event);
    case fabric::RendezvousType::kDisconnected:
      return OnDisconnected(*session, event);
  }
}

void Rendezvous::OnRequest(uint8_t place, const fabric::RendezvousEvent& event) {
  const auto known = by_fabric_listener_.find({place, static_cast<uint64_t>(event.listener)});
  if (known == by_fabric_listener_.end()) {
    Session* returning = connections_.FindReturning(place, event.listener);
    if (returning != nullptr) return OnReturn(*returning, place, event);
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
  auto made = Make(listener.options, false, event.local, event.peer, place, listener.over);
  const absl::StatusOr<Session*> created =
      made.ok() ? Add(*std::move(made)) : absl::StatusOr<Session*>(made.status());
  if (!created.ok()) return Reject(place, event, std::string(FromAbsl(created.status().message())));
  Session& session = **created;
  session.request = event.request;
  session.listener = listener_id;
  leave.Cancel();
  undo.Cancel();
  session.admitted = address;
  half_open_.SetOwner(half_open, static_cast<uint64_t>(session.id));
  session.half_open = half_open;
  driver_.tap().Received(session.id, driver_.now(), PrivateDataOf(event), hello.hello);
  driver_.Feed(session, hello);
  driver_.Flush();
}

bool Rendezvous::DropHalfOpen(const char* why) {
  const std::optional<uint64_t> chosen = half_open_.Choose(driver_.now());
  if (!chosen) return false;
  Session& session = *connections_.Find(ConnectionId{*chosen});
  half_open_.Remove(std::exchange(session.half_open, kNoHandle));
  if (HasEnded(session.visibility)) return true;
  session.transport.failure().cause = fabric::Cause::kTimedOut;
  session.transport.failure().detail =
      std::string("the peer has not completed its set-up, and ") + why;
  session.transport.Note(QueuePairCue::kFailed);
  driver_.Feed(session, sdp::ConnectFailed{});
  return true;
}

void Rendezvous::OnShort() {
  for (int i = 0; i < kDroppedWhenShort && DropHalfOpen("the system is short of descriptors");) ++i;
}

void Rendezvous::GiveUp(uint8_t place, const fabric::RendezvousEvent& event) {
  if (event.type == fabric::RendezvousType::kConnectRequest) {
    (void)fabrics_[place]->Reject(event.request, {});
  } else if (Session* session = connections_.Find(place, event.queue_pair)) {
    driver_.Condemn(*session);
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
  FailOver(place, event, {EndReason::kHandshakeRefused, "set-up failed: " + why});
}

void Rendezvous::Reject(uint8_t place, const fabric::RendezvousEvent& event, Rejection reason) {
  observer_.OnRejected(reason);
  SayRejected(event, ToText(reason));
  (void)fabrics_[place]->Reject(event.request, EncodeRejection(reason));
  FailOver(place, event, {EndReason::kNoMemory, std::string("set-up failed: ") + ToText(reason)});
}

void Rendezvous::OnEstablished(Session& session, const fabric::RendezvousEvent& event) {
  if (!session.transport.Note(QueuePairCue::kEstablished)) return;
  session.attempt.reset();
  half_open_.Remove(std::exchange(session.half_open, kNoHandle));
  connections_.EndMove(session);
  session.has_another_way = false;
  if (session.moved) observer_.OnMoved(session.id, session.transport.place());
  Listener* const listener = listeners_.Find(static_cast<uint64_t>(session.listener));
  if (!session.moved && !session.connecting && listener != nullptr) {
    session.counted = true;
    ++listener->waiting;
  }
  if (!session.moved) {  // afterwards it keeps the names that its application knows
    session.local = event.local;
    session.peer = event.peer;
  }
  if (session.transport.phase() == QueuePairPhase::kEnding) return;  // its kDisconnected follows
  sdp::Established established;
  established.reads_out_max = event.initiator_depth;
  established.reads_in_max = event.responder_resources;
  established.addresses = {session.local.port, session.peer.port, session.local.bytes,
                           session.peer.bytes};
  if (session.connecting) {
    sdp::wire::Message& hello_ack = established.hello_ack.emplace();
    if (const auto error = sdp::wire::DecodeHelloAck(PrivateDataOf(event), hello_ack)) {
      session.message_field = error->field;
      return driver_.Feed(session, sdp::HelloRefused{error->reason});
    }
    driver_.tap().Received(session.id, driver_.now(), PrivateDataOf(event), hello_ack);
  }
  driver_.Feed(session, established);
}

void Rendezvous::OnConnectFailed(Session& session, const fabric::RendezvousEvent& event) {
  session.transport.failure().cause = event.cause;
  session.transport.failure().detail = event.detail;
  session.rejection = DecodeRejection(PrivateDataOf(event));
  session.transport.Note(QueuePairCue::kFailed);
  if (MayTryNext(session, event.cause)) {
    Session* const next = Next(session);
    if (next != nullptr) (void)Begin(*next);
    return;
  }
  const bool no_path = MeansNoPath(event.cause) || event.cause == fabric::Cause::kRejected;
  const bool another = session.has_another_way && session.follows && no_path;
  driver_.Feed(session, sdp::ConnectFailed{.another_way = another});
}

void Rendezvous::OnDisconnected(Session& session, const fabric::RendezvousEvent& event) {
  session.transport.failure().cause = event.cause;
  session.transport.failure().detail = event.detail;
  driver_.FeedLoss(session);
}

}  // namespace esdp::provider
