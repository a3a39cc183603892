#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"
#include "impl/fabric/verbs/native_path.h"
#include "impl/fabric/verbs/rendezvous.h"

// Attempts in connection profile A: first the peer's address is resolved like any other, which
// tells its GID; then SDP's service there, by an id of its own.

namespace esdp::fabric::verbs {

void Rendezvous::SeekService(QueuePairId id, Attempt& attempt) {
  const Calls& calls = commons_.calls();
  rdma_cm_id* const found = attempt.id;
  if (!HasInfiniBand(calls, found->verbs, found->port_num)) {
    return Fail(id, Cause::kUnreachable,
                std::string("the way to this address is through port ") +
                    std::to_string(found->port_num) + " of " + commons_.device->name() +
                    ", which is none of InfiniBand: SDP's service ids are only there",
                {});
  }
  const auto made = manager_->CreateId(*this, RDMA_PS_IB);
  if (!made.ok())
    return Fail(id, Cause::kDevice, std::string(FromAbsl(made.status().message())), {});
  attempt.local = FromSystem(rdma_get_local_addr(found));
  NativePath path = PathOver(*found, attempt.local.port, attempt.peer.port);
  Discard(found);  // its port goes over to the other
  attempt.id = *made;
  attempt.has_service = true;
  owners_[attempt.id] = Owner{Kind::kQueuePair, static_cast<uint64_t>(id)};
  if (calls.resolve_address(attempt.id, reinterpret_cast<sockaddr*>(&path.source),
                            reinterpret_cast<sockaddr*>(&path.target),
                            Milliseconds(attempt.deadline)) != 0) {
    Fail(id, Cause::kUnreachable, std::string("no way to SDP's service: ") + strerror(errno), {});
  }
}

}  // namespace esdp::fabric::verbs
