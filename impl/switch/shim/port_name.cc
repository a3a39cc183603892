#include "impl/switch/shim/port_name.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/made.h"

namespace esdp::switching {
namespace {

// A socket of datagrams has no backlog that could fill.
template <typename Do>
int WithName(uint16_t port, const Do& act) {
  const int fd = made.socket.get()(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const int bytes =
      std::snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "esdp-switch/tcp/%u", port);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1) + static_cast<socklen_t>(bytes);
  const int result = act(fd, reinterpret_cast<const sockaddr*>(&name), length);
  (void)libc::real.close.get()(fd);
  return result;
}

}  // namespace

int HoldPortName(uint16_t port) {
  return WithName(port, [](int fd, const sockaddr* name, socklen_t length) {
    return libc::real.bind.get()(fd, name, length) == 0 ? DuplicateHigh(fd) : -1;
  });
}

bool PortNameIsHeld(uint16_t port) {
  return WithName(port, [](int fd, const sockaddr* name, socklen_t length) {
           return libc::real.connect.get()(fd, name, length);
         }) == 0;
}

}  // namespace esdp::switching
