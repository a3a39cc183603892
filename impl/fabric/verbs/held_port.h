#ifndef ESDP_IMPL_FABRIC_VERBS_HELD_PORT_H_
#define ESDP_IMPL_FABRIC_VERBS_HELD_PORT_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/calls.h"

namespace esdp::fabric::verbs {

// A port of TCP that nobody else is given meanwhile. A connection of iWARP is one of TCP, but the
// connection manager gives out the ports of a space of its own, and the device refuses those that
// TCP has in use. The device itself may take a port that is held here.
//
//   Owns:     a socket that is bound and does nothing.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   none: where TCP gives no port nothing is held.
class HeldPort {
 public:
  // Finds one at the address, whose port is 0, and writes it there; the port stays 0 where there is
  // none to have, which leaves the choice to the connection manager.
  static HeldPort Take(Address& address);

  HeldPort() = default;
  ~HeldPort();
  HeldPort(HeldPort&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  HeldPort& operator=(HeldPort&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

 private:
  int descriptor_ = -1;
};

// What `bind` says of the address; on iWARP, where any port will do, of the address with a free
// one, which is held. Where it says AlreadyExists, because the connection manager has that one in
// use, others are tried: sixteen, then that is the answer.
absl::StatusOr<rdma_cm_id*> BindToFreePort(
    const Address& address, const ibv_device& device, HeldPort& held,
    const std::function<absl::StatusOr<rdma_cm_id*>(const Address&)>& bind);

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_HELD_PORT_H_
