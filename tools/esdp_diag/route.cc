#include "tools/esdp_diag/route.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"

namespace esdp_diag {
namespace {

sockaddr_storage ToSystem(const esdp::Address& address, socklen_t& length) {
  sockaddr_storage storage{};
  const auto& bytes = address.bytes();
  constexpr uint16_t kAnyPort = 9;  // of UDP; nothing is sent there
  if (address.family() == esdp::Family::kIpv4) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(kAnyPort);
    std::copy(bytes.begin() + 12, bytes.end(), reinterpret_cast<uint8_t*>(&four.sin_addr));
    std::memcpy(&storage, &four, length = sizeof(four));
  } else {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(kAnyPort);
    six.sin6_scope_id = address.scope_id();
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(&six.sin6_addr));
    std::memcpy(&storage, &six, length = sizeof(six));
  }
  return storage;
}

// The address alone, as text.
std::string HostOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
              sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
              sizeof(text));
  }
  return text;
}

std::string InterfaceWith(const std::string& host) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return "";
  std::string found;
  for (const ifaddrs* entry = first; entry != nullptr && found.empty(); entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && HostOf(entry->ifa_addr) == host) found = entry->ifa_name;
  }
  freeifaddrs(first);
  return found;
}

}  // namespace

absl::StatusOr<Route> RouteTo(const esdp::Address& address) {
  socklen_t length = 0;
  sockaddr_storage storage = ToSystem(address, length);
  auto* const system = reinterpret_cast<sockaddr*>(&storage);
  const int fd = socket(system->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "this system has no such addresses");
  // For UDP this only looks up the route.
  const bool found = connect(fd, system, length) == 0 && getsockname(fd, system, &length) == 0;
  const int reason = errno;
  close(fd);
  if (!found) return absl::ErrnoToStatus(reason, "no route");
  const std::string host = HostOf(system);
  return Route{host, InterfaceWith(host)};
}

}  // namespace esdp_diag
