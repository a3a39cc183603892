#include "impl/fabric/verbs/native_path.h"

#include <endian.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "impl/base/bytes.h"
#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"

namespace esdp::fabric::verbs {
namespace {

constexpr uint64_t kSdpService = 0x10000;  // and the port
constexpr uint64_t kWholeService = ~uint64_t{0};
constexpr uint64_t kPortOfService = 0xffff;

sockaddr_ib EndOf(const ibv_gid& gid, uint16_t partition_key, uint64_t service, uint64_t mask) {
  sockaddr_ib end{};
  end.sib_family = AF_IB;
  end.sib_pkey = partition_key;
  CopyBytes(std::as_writable_bytes(std::span(&end.sib_addr, 1)), std::as_bytes(std::span(&gid, 1)));
  end.sib_sid = htobe64(service);
  end.sib_sid_mask = htobe64(mask);
  return end;
}

}  // namespace

bool HasInfiniBand(const Calls& calls, ibv_context* device, uint8_t port) {
  ibv_device_attr attributes{};
  if (calls.query_device(device, &attributes) != 0) return false;
  for (uint8_t each = 1; each <= attributes.phys_port_cnt; ++each) {
    ibv_port_attr state{};
    if (port != 0 && port != each) continue;
    if (calls.query_port(device, each, &state) != 0) continue;
    if (state.link_layer == IBV_LINK_LAYER_INFINIBAND) return true;
  }
  return false;
}

// Of our own service only the port counts, in the manager's own space: what the peer hears of it
// stands in the Hello.
NativePath PathOver(const rdma_cm_id& found, uint16_t local_port, uint16_t peer_port) {
  const rdma_ib_addr& ends = found.route.addr.addr.ibaddr;
  NativePath path;
  path.source = EndOf(ends.sgid, ends.pkey, local_port, kPortOfService);
  path.target = EndOf(ends.dgid, ends.pkey, kSdpService + peer_port, kWholeService);
  return path;
}

// A datagram socket that is connected sends nothing, and has its address.
absl::StatusOr<Address> LocalTowards(const Address& peer) {
  const SocketAddress to = ToSystem(peer);
  SocketAddress from;
  const int fd = socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool found = fd >= 0 && connect(fd, to.pointer(), to.bytes) == 0 &&
                     getsockname(fd, from.pointer(), &from.bytes) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!found) {
    return MakeStatus(absl::StatusCode::kUnavailable,
                      "no way to " + ToString(peer) + ": " + strerror(error));
  }
  Address local = FromSystem(from.pointer());
  local.port = 0;
  return local;
}

}  // namespace esdp::fabric::verbs
