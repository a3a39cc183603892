#include "impl/exs/call_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

#include "impl/exs/convert.h"

namespace esdp::exs {
namespace {

template <typename T>
int Give(const T& value, void* out, socklen_t* len) {
  if (out == nullptr || len == nullptr) return EFAULT;
  const socklen_t length = std::min<socklen_t>(*len, sizeof(value));
  std::copy_n(reinterpret_cast<const char*>(&value), length, static_cast<char*>(out));
  *len = length;
  return 0;
}

std::optional<Way> TimeoutOf(int level, int name) {
  if (level != SOL_SOCKET) return std::nullopt;
  if (name == SO_RCVTIMEO) return Way::kReceiving;
  if (name == SO_SNDTIMEO) return Way::kSending;
  return std::nullopt;
}

int SetTimeout(ExsSocket& socket, Way way, const void* value, socklen_t len) {
  if (len < sizeof(timeval)) return EINVAL;
  const std::optional<absl::Duration> timeout = ToDuration(*static_cast<const timeval*>(value));
  if (!timeout.has_value()) return EDOM;
  socket.calls().SetTimeout(way, *timeout);
  return 0;
}

// What SDP has a way of its own for, or no use.
bool MeansNothing(int level, int name) {
  if (level == SOL_SOCKET) {
    return name == SO_KEEPALIVE || name == SO_SNDBUF || name == SO_RCVBUF || name == SO_OOBINLINE;
  }
  if (level != IPPROTO_TCP) return false;
  return name == TCP_NODELAY || name == TCP_CORK || name == TCP_QUICKACK || name == TCP_KEEPIDLE ||
         name == TCP_KEEPINTVL || name == TCP_KEEPCNT || name == TCP_USER_TIMEOUT;
}

}  // namespace

std::optional<int> GetCallOption(ExsSocket& socket, int level, int name, void* value,
                                 socklen_t* len) {
  if (const std::optional<Way> way = TimeoutOf(level, name)) {
    return Give(absl::ToTimeval(socket.calls().timeout(*way)), value, len);
  }
  if (level != SOL_SOCKET) return std::nullopt;
  switch (name) {
    case SO_ERROR:
      return Give(socket.calls().TakeError(), value, len);
    case SO_PROTOCOL:
      return Give(static_cast<int>(IPPROTO_TCP), value, len);
    case SO_SNDBUF:
    case SO_RCVBUF:
      return Give(static_cast<int>(SendBuffer::kBytes), value, len);
    case SO_KEEPALIVE:
    case SO_OOBINLINE:
      return Give(1, value, len);
    default:
      return std::nullopt;
  }
}

std::optional<int> SetCallOption(ExsSocket& socket, int level, int name, const void* value,
                                 socklen_t len) {
  const std::optional<Way> way = TimeoutOf(level, name);
  if (!way.has_value() && !MeansNothing(level, name)) return std::nullopt;
  if (value == nullptr) return EFAULT;
  if (way.has_value()) return SetTimeout(socket, *way, value, len);
  return len < sizeof(int) ? EINVAL : 0;
}

}  // namespace esdp::exs
