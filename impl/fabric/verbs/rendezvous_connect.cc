#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"
#include "impl/fabric/verbs/manager_error.h"
#include "impl/fabric/verbs/native_path.h"
#include "impl/fabric/verbs/rendezvous.h"

// Connection attempts of ours, from the address to the established connection or its failure.

namespace esdp::fabric::verbs {
namespace {

// siw opens its TCP connection within the call.
Cause CauseOfConnect(int error) {
  if (error == ECONNREFUSED || error == ECONNRESET) return Cause::kRefused;
  return error == ETIMEDOUT ? Cause::kTimedOut : Cause::kUnreachable;
}

}  // namespace

// --- connecting ---

absl::StatusOr<rdma_cm_id*> Rendezvous::Bind(const Address& address) {
  ESDP_ASSIGN_OR_RETURN(rdma_cm_id* const id, manager_->CreateId(*this, port_space_));
  SocketAddress system = ToSystem(address);
  if (commons_.calls().bind_address(id, system.pointer()) == 0) return id;
  absl::Status status = BindError("cannot connect from " + ToString(address), address);
  commons_.calls().destroy_id(id);
  return status;
}

int Rendezvous::Milliseconds(Time deadline) const {
  constexpr int kLongest = 60'000;
  if (deadline == kTimeInfinite) return kLongest;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - commons_.clock->Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 1, kLongest));
}

absl::StatusOr<Address> Rendezvous::Reserve(QueuePairId id, const Address& local,
                                            const Address& peer) {
  if (reserved_.contains(id)) {
    return absl::FailedPreconditionError("the queue pair has an address: connect it");
  }
  Address from = local;
  if (profile_ == Profile::kNative && IsWildcard(local)) {
    ESDP_ASSIGN_OR_RETURN(from, LocalTowards(peer));
    from.port = local.port;
  }
  Reserved reserved;
  ESDP_ASSIGN_OR_RETURN(reserved.id,
                        BindToFreePort(from, *device()->device, reserved.port,
                                       [this](const Address& at) { return Bind(at); }));
  rdma_cm_id* const bound = reserved.id;
  reserved_.emplace(id, std::move(reserved));
  return FromSystem(rdma_get_local_addr(bound));
}

absl::Status Rendezvous::Connect(QueuePairId id, const Address& local, const Address& peer,
                                 ConstBytes private_data, Time deadline) {
  if (private_data.size() > commons_.device->limits().private_data_max) {
    return absl::OutOfRangeError("more private data than limits().private_data_max");
  }
  if (!reserved_.contains(id)) {
    Address from = local;
    if (IsWildcard(from) && from.port == 0) from.family = peer.family;
    ESDP_RETURN_IF_ERROR(Reserve(id, from, peer).status());
  }
  QueuePair& queue_pair = *queue_pairs_.Find(id);
  Attempt attempt;
  attempt.deadline = deadline;
  attempt.peer = peer;
  attempt.initiator_depth = queue_pair.options().initiator_depth;
  attempt.responder_resources = queue_pair.options().responder_resources;
  attempt.private_data.assign(private_data.begin(), private_data.end());
  Reserved reserved = std::move(reserved_.extract(id).mapped());
  attempt.id = reserved.id;
  attempt.port = std::move(reserved.port);
  SocketAddress to = ToSystem(peer);
  if (commons_.calls().resolve_address(attempt.id, nullptr, to.pointer(), Milliseconds(deadline)) !=
      0) {
    absl::Status status = ManagerError("no way to " + ToString(peer));
    commons_.calls().destroy_id(attempt.id);
    return status;
  }
  owners_[attempt.id] = Owner{Kind::kQueuePair, static_cast<uint64_t>(id)};
  Add(id, std::move(attempt));
  queue_pair.BeginStartup();
  return absl::OkStatus();
}

void Rendezvous::OnAddress(QueuePairId id, Attempt& attempt) {
  if (attempt.id->verbs != commons_.device->context()) {
    const char* const other =
        attempt.id->verbs == nullptr ? "no RDMA device" : attempt.id->verbs->device->name;
    return Fail(id, Cause::kUnreachable,
                std::string("the way to this address is through ") + other + ", not " +
                    commons_.device->name(),
                {});
  }
  if (profile_ == Profile::kNative && !attempt.has_service) return SeekService(id, attempt);
  if (commons_.calls().resolve_route(attempt.id, Milliseconds(attempt.deadline)) != 0) {
    Fail(id, Cause::kUnreachable, std::string("no route: ") + strerror(errno), {});
  }
}

void Rendezvous::OnRoute(QueuePairId id, Attempt& attempt) {
  QueuePair& queue_pair = *queue_pairs_.Find(id);
  if (const absl::Status status = queue_pair.Adopt(attempt.id); !status.ok()) {
    return Fail(id, Cause::kDevice, std::string(FromAbsl(status.message())), {});
  }
  attempt.adopted = true;
  queue_pairs_.OnAdopted(queue_pair, id);
  rdma_conn_param parameters{};
  parameters.private_data = attempt.private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(attempt.private_data.size());
  parameters.initiator_depth = static_cast<uint8_t>(attempt.initiator_depth);
  parameters.responder_resources = static_cast<uint8_t>(attempt.responder_resources);
  parameters.retry_count = 6;  // of 7, rdma_rxe makes no end
  parameters.rnr_retry_count = 7;
  if (commons_.calls().connect(attempt.id, &parameters) != 0) {
    const int error = errno;
    return Fail(id, CauseOfConnect(error), std::string("cannot connect: ") + strerror(error), {});
  }
  attempt.asked = true;
}

void Rendezvous::OnEstablished(QueuePairId id, Attempt& attempt, const Told& told) {
  QueuePair::Agreed agreed;
  agreed.local = attempt.has_service ? attempt.local : FromSystem(rdma_get_local_addr(attempt.id));
  agreed.peer = attempt.has_service ? attempt.peer : FromSystem(rdma_get_peer_addr(attempt.id));
  agreed.initiator_depth = attempt.initiator_depth;
  agreed.responder_resources = attempt.responder_resources;
  if (!attempt.accepts) {
    // Drivers of iWARP do not agree which of the two is whose.
    const uint32_t lower = commons_.device->is_iwarp()
                               ? std::min(told.initiator_depth, told.responder_resources)
                               : UINT32_MAX;
    agreed.initiator_depth = std::min({agreed.initiator_depth, told.initiator_depth, lower});
    agreed.responder_resources =
        std::min({agreed.responder_resources, told.responder_resources, lower});
  }
  const bool accepts = attempt.accepts;
  attempts_.erase(id);
  queue_pairs_.Find(id)->Establish(agreed, accepts ? ConstBytes{} : ConstBytes(told.private_data));
}

void Rendezvous::Fail(QueuePairId id, Cause cause, std::string detail, ConstBytes private_data) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return;
  const Attempt attempt = std::move(found->second);
  attempts_.erase(found);
  owners_.erase(attempt.id);
  QueuePair* const queue_pair = queue_pairs_.Find(id);
  if (queue_pair != nullptr && IsKept(attempt)) Keep(*queue_pair, attempt.id);
  if (queue_pair != nullptr) queue_pair->FailStartup(cause, std::move(detail), private_data);
  if (!attempt.adopted) commons_.calls().destroy_id(attempt.id);
}

void Rendezvous::GiveUp(QueuePairId id) {
  if (const auto found = reserved_.find(id); found != reserved_.end()) {
    commons_.calls().destroy_id(found->second.id);
    reserved_.erase(found);
  }
  if (const auto found = attempts_.find(id); found != attempts_.end()) {
    const Attempt attempt = std::move(found->second);
    attempts_.erase(found);
    if (!attempt.adopted) commons_.calls().destroy_id(attempt.id);
    QueuePair* const queue_pair = queue_pairs_.Find(id);
    if (queue_pair != nullptr && IsKept(attempt)) Keep(*queue_pair, attempt.id);
  }
  absl::erase_if(owners_, [id](const auto& each) {
    return each.second.kind == Kind::kQueuePair && each.second.handle == static_cast<uint64_t>(id);
  });
}

void Rendezvous::Keep(QueuePair& queue_pair, rdma_cm_id* id) {
  kept_.emplace(id, queue_pair.Leave());
  owners_[id] = Owner{Kind::kKept, 0};
}

void Rendezvous::DiscardKept(rdma_cm_id* id) {
  const auto found = kept_.find(id);
  const QueuePair::Left left = found->second;
  kept_.erase(found);
  commons_.calls().destroy_qp(id);
  commons_.completion_queues.Release(left.completion_queue, left.entries);
  Discard(id);
}

void Rendezvous::Add(QueuePairId id, Attempt attempt) {
  next_deadline_ = std::min(next_deadline(), attempt.deadline);
  attempts_.emplace(id, std::move(attempt));
}

void Rendezvous::OnDeadlines(Time now) {
  if (now < next_deadline()) return;
  std::vector<QueuePairId> late;
  next_deadline_ = kTimeInfinite;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.deadline <= now) {
      late.push_back(id);
    } else {
      next_deadline_ = std::min(next_deadline_, attempt.deadline);
    }
  }
  for (const QueuePairId id : late) Fail(id, Cause::kTimedOut, "the peer did not answer", {});
}

}  // namespace esdp::fabric::verbs
