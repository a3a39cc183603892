#include "impl/fabric/verbs/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"

namespace esdp::fabric::verbs {
namespace {

// What the connection manager of InfiniBand says of a rejection (IBTA volume 1, section 12.6.7.2).
constexpr int kRejectedNobodyListens = 8;
constexpr int kRejectedByConsumer = 28;

// How long the connecting side may take to say that it has our answer.
constexpr Duration kAnswerWait = std::chrono::seconds(5);

Cause CauseOfRejection(int status, bool iwarp) {
  if (iwarp) return status == -ECONNREFUSED ? Cause::kRefused : Cause::kRejected;
  if (status == kRejectedNobodyListens) return Cause::kRefused;
  return status == kRejectedByConsumer ? Cause::kRejected : Cause::kPeerReset;
}

}  // namespace

Rendezvous::~Rendezvous() {
  listeners_.ForEach([&](uint64_t, Listener& each) { manager_->StopListening(*this, each.id); });
  requests_.ForEach([&](uint64_t, Request& each) { commons_.calls().destroy_id(each.id); });
  for (const auto& [queue_pair, each] : reserved_) commons_.calls().destroy_id(each.id);
  for (const auto& [queue_pair, attempt] : attempts_) {
    if (!attempt.adopted) commons_.calls().destroy_id(attempt.id);
  }
  while (!kept_.empty()) DiscardKept(kept_.begin()->first);
}

void Rendezvous::Discard(rdma_cm_id* id) {
  owners_.erase(id);
  commons_.calls().destroy_id(id);
}

// --- listening ---

absl::StatusOr<ListenerId> Rendezvous::Listen(const Address& address, int backlog) {
  if (profile_ == Profile::kNative) {
    return absl::UnimplementedError(
        "the system lets no program listen on SDP's own service ids: without \":native\" "
        "peers that are esdp are met");
  }
  ESDP_ASSIGN_OR_RETURN(rdma_cm_id* const id,
                        manager_->Listen(*this, port_space_, address, backlog));
  const uint64_t handle = listeners_.Insert(Listener{id});
  owners_[id] = Owner{Kind::kListener, handle};
  return ListenerId{handle};
}

absl::StatusOr<Address> Rendezvous::ListenerAddress(ListenerId id) const {
  const Listener* listener = listeners_.Find(static_cast<uint64_t>(id));
  if (listener == nullptr) return absl::NotFoundError("no such listener");
  return FromSystem(rdma_get_local_addr(listener->id));
}

absl::Status Rendezvous::StopListening(ListenerId id) {
  const Listener* listener = listeners_.Find(static_cast<uint64_t>(id));
  if (listener == nullptr) return absl::NotFoundError("no such listener");
  std::vector<RequestId> waiting;
  requests_.ForEach([&](uint64_t handle, const Request& request) {
    if (request.listener == id) waiting.push_back(RequestId{handle});
  });
  for (const RequestId request : waiting) (void)Reject(request, {});
  commons_.outbox.EraseEventsIf(
      [id](const RendezvousEvent& event) { return event.listener == id; });
  owners_.erase(listener->id);
  manager_->StopListening(*this, listener->id);
  listeners_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

void Rendezvous::OnRequest(const Told& told) {
  const ListenerId listener{owners_.find(told.listener)->second.handle};
  if (told.id->verbs != device()) return TurnAway(told, listener);
  const RequestId id{requests_.Insert(Request{.listener = listener,
                                              .id = told.id,
                                              .initiator_depth = told.initiator_depth,
                                              .responder_resources = told.responder_resources})};
  owners_[told.id] = Owner{Kind::kRequest, static_cast<uint64_t>(id)};
  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = listener;
  event.request = id;
  event.local = FromSystem(rdma_get_local_addr(told.id));
  event.peer = FromSystem(rdma_get_peer_addr(told.id));
  event.initiator_depth = told.initiator_depth;
  event.responder_resources = told.responder_resources;
  event.private_data_bytes = static_cast<uint16_t>(told.private_data.size());
  CopyBytes(Bytes(event.private_data).first(told.private_data.size()), told.private_data);
  commons_.outbox.PushBack(std::move(event));
}

// A listener on a wildcard hears of devices that the Context has not opened, too.
void Rendezvous::TurnAway(const Told& told, ListenerId listener) {
  const std::string name = told.id->verbs == nullptr ? "" : told.id->verbs->device->name;
  RendezvousEvent event;
  event.type = RendezvousType::kTurnedAway;
  event.listener = listener;
  event.local = FromSystem(rdma_get_local_addr(told.id));
  event.peer = FromSystem(rdma_get_peer_addr(told.id));
  event.detail = "it came through the RDMA device " + name + ", which this listener is not for";
  commons_.calls().reject(told.id, nullptr, 0);
  commons_.calls().destroy_id(told.id);
  commons_.outbox.PushBack(std::move(event));
}

absl::Status Rendezvous::Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data) {
  const Request* request = requests_.Find(static_cast<uint64_t>(id));
  if (request == nullptr) return absl::NotFoundError("no such request, or it is answered already");
  if (private_data.size() > commons_.device->limits().answer_data_max) {
    return absl::OutOfRangeError("more private data than limits().answer_data_max");
  }
  QueuePair& target = *queue_pairs_.Find(queue_pair);
  Attempt attempt;
  attempt.id = request->id;
  attempt.accepts = attempt.adopted = true;
  attempt.deadline = commons_.clock->Now() + kAnswerWait;
  attempt.initiator_depth = std::min(target.options().initiator_depth, request->initiator_depth);
  attempt.responder_resources =
      std::min(target.options().responder_resources, request->responder_resources);
  if (absl::Status status = target.Adopt(request->id); !status.ok()) {
    if (!absl::IsNotFound(status)) return status;
    rdma_cm_id* const gone = request->id;
    requests_.Erase(static_cast<uint64_t>(id));
    Discard(gone);
    return status;
  }
  queue_pairs_.OnAdopted(target, queue_pair);
  target.BeginStartup();
  owners_[request->id] = Owner{Kind::kQueuePair, static_cast<uint64_t>(queue_pair)};
  requests_.Erase(static_cast<uint64_t>(id));
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(private_data.size());
  parameters.initiator_depth = static_cast<uint8_t>(attempt.initiator_depth);
  parameters.responder_resources = static_cast<uint8_t>(attempt.responder_resources);
  parameters.rnr_retry_count = 7;
  rdma_cm_id* const cm_id = attempt.id;
  Add(queue_pair, std::move(attempt));
  if (commons_.calls().accept(cm_id, &parameters) != 0) {
    Fail(queue_pair, Cause::kPeerReset, std::string("cannot accept: ") + strerror(errno), {});
  }
  return absl::OkStatus();
}

absl::Status Rendezvous::Reject(RequestId id, ConstBytes private_data) {
  const Request* request = requests_.Find(static_cast<uint64_t>(id));
  if (request == nullptr) return absl::NotFoundError("no such request, or it is answered already");
  if (private_data.size() > commons_.device->limits().private_data_max) {
    return absl::OutOfRangeError("more private data than limits().private_data_max");
  }
  rdma_cm_id* const cm_id = request->id;
  commons_.calls().reject(cm_id, private_data.data(), static_cast<uint8_t>(private_data.size()));
  commons_.outbox.EraseEventsIf([id](const RendezvousEvent& event) { return event.request == id; });
  requests_.Erase(static_cast<uint64_t>(id));
  Discard(cm_id);
  return absl::OkStatus();
}

// --- events ---

void Rendezvous::OnTold(const Told& told) {
  queue_pairs_.HearTheDevice();
  Believe(told);
  queue_pairs_.Signal();
}

void Rendezvous::Believe(const Told& told) {
  if (told.type == RDMA_CM_EVENT_CONNECT_REQUEST) return OnRequest(told);
  const auto found = owners_.find(told.id);
  if (found == owners_.end()) return;
  const Owner owner = found->second;
  if (owner.kind == Kind::kQueuePair) {
    OnAttempt(QueuePairId{owner.handle}, told);
  } else if (owner.kind == Kind::kRequest) {
    // The peer has given up before our answer.
    requests_.Erase(owner.handle);
    Discard(told.id);
  } else if (owner.kind == Kind::kKept) {
    DiscardKept(told.id);
  }
}

void Rendezvous::OnAttempt(QueuePairId id, const Told& told) {
  const auto attempt = attempts_.find(id);
  if (attempt == attempts_.end()) {
    QueuePair* const queue_pair = queue_pairs_.Find(id);
    if (queue_pair == nullptr) return;
    // A peer that has accepted and ends before it has our RTU rejects.
    if (told.type == RDMA_CM_EVENT_DISCONNECTED || told.type == RDMA_CM_EVENT_REJECTED) {
      queue_pair->OnDisconnected();
    }
    if (told.type == RDMA_CM_EVENT_DEVICE_REMOVAL) queue_pair->OnDeviceLost();
    return;
  }
  attempt->second.asked = false;
  switch (told.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return OnAddress(id, attempt->second);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return OnRoute(id, attempt->second);
    case RDMA_CM_EVENT_ESTABLISHED:
      return OnEstablished(id, attempt->second, told);
    case RDMA_CM_EVENT_REJECTED: {
      const Cause cause = CauseOfRejection(told.status, commons_.device->is_iwarp());
      return Fail(id, cause, rdma_event_str(told.type),
                  cause == Cause::kRejected ? ConstBytes(told.private_data) : ConstBytes{});
    }
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return Fail(id, told.status == -ETIMEDOUT ? Cause::kTimedOut : Cause::kUnreachable,
                  rdma_event_str(told.type), {});
    case RDMA_CM_EVENT_DISCONNECTED:
      return Fail(id, Cause::kPeerReset, rdma_event_str(told.type), {});
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return Fail(id, Cause::kDevice, rdma_event_str(told.type), {});
    default:
      return;
  }
}

}  // namespace esdp::fabric::verbs
