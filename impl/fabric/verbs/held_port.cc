#include "impl/fabric/verbs/held_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "impl/fabric/socket_address.h"

namespace esdp::fabric::verbs {

HeldPort HeldPort::Take(Address& address) {
  SocketAddress system = ToSystem(address);
  HeldPort held;
  held.descriptor_ = socket(system.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (held.descriptor_ < 0) return held;
  // Like the device's own: with that, two may be bound to one port.
  const int on = 1;
  setsockopt(held.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family == Family::kIpv6) {
    setsockopt(held.descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (bind(held.descriptor_, system.pointer(), system.bytes) != 0 ||
      getsockname(held.descriptor_, system.pointer(), &system.bytes) != 0) {
    return {};
  }
  address.port = FromSystem(system.pointer()).port;
  return held;
}

HeldPort::~HeldPort() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<rdma_cm_id*> BindToFreePort(
    const Address& address, const ibv_device& device, HeldPort& held,
    const std::function<absl::StatusOr<rdma_cm_id*>(const Address&)>& bind) {
  constexpr int kPortsTried = 16;
  const bool may_choose = address.port == 0 && device.transport_type == IBV_TRANSPORT_IWARP;
  for (int tries = 1;; ++tries) {
    Address at = address;
    if (may_choose) held = HeldPort::Take(at);
    absl::StatusOr<rdma_cm_id*> id = bind(at);
    if (!absl::IsAlreadyExists(id.status()) || at.port == address.port || tries == kPortsTried) {
      return id;
    }
  }
}

}  // namespace esdp::fabric::verbs
