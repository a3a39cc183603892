#include "impl/exs/convert.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "esdp/status.h"
#include "sys/exs.h"

namespace esdp::exs {
namespace {

constexpr long kMicroseconds = 1000 * 1000;

}  // namespace

int ErrnoOf(const absl::Status& status) {
  if (status.ok()) return 0;
  const ErrorDetail detail = DetailOf(status);
  // C programs are told apart from a limit of registration, which is ENOMEM.
  if (detail.kind == ErrorKind::kMemory) return ENOBUFS;
  return detail.sys_errno != 0 ? detail.sys_errno : EIO;
}

int ErrnoOf(const Event& event, bool closing) {
  if (event.ok()) return 0;
  if (closing && IsOurs(event.kind)) return ECANCELED;
  return event.sys_errno != 0 ? event.sys_errno : EIO;
}

bool IsOurs(ErrorKind kind) {
  return kind == ErrorKind::kShutDown || kind == ErrorKind::kLocalAbort;
}

uint32_t FlagsOf(const Event& event) {
  uint32_t flags = 0;
  if ((event.flags & kEof) != 0) flags |= EXSX_EVF_EOF;
  if ((event.flags & kZeroCopy) != 0) flags |= EXSX_EVF_ZEROCOPY;
  if ((event.flags & kCopied) != 0) flags |= EXSX_EVF_COPIED;
  if ((event.flags & kUrgent) != 0) flags |= EXSX_EVF_URGENT;
  return flags;
}

std::optional<Address> ToAddress(const sockaddr* address, socklen_t len) {
  if (len < sizeof(sa_family_t)) return std::nullopt;
  std::array<uint8_t, 16> bytes{};
  if (address->sa_family == AF_INET && len >= sizeof(sockaddr_in)) {
    const auto& in = *reinterpret_cast<const sockaddr_in*>(address);
    const uint32_t host = ntohl(in.sin_addr.s_addr);
    for (size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<uint8_t>(host >> (24 - 8 * i));
    return Address::Of(Family::kIpv4, bytes, ntohs(in.sin_port));
  }
  if (address->sa_family == AF_INET6 && len >= sizeof(sockaddr_in6)) {
    const auto& in = *reinterpret_cast<const sockaddr_in6*>(address);
    std::ranges::copy(in.sin6_addr.s6_addr, bytes.begin());
    return Address::Of(Family::kIpv6, bytes, ntohs(in.sin6_port), in.sin6_scope_id);
  }
  return std::nullopt;
}

socklen_t FromAddress(const Address& address, sockaddr_storage* out) {
  *out = {};
  const std::array<uint8_t, 16>& bytes = address.bytes();
  if (address.family() == Family::kIpv4) {
    auto& in = *reinterpret_cast<sockaddr_in*>(out);
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port());
    uint32_t host = 0;
    for (size_t i = 0; i < 4; ++i) host = host << 8 | bytes[12 + i];
    in.sin_addr.s_addr = htonl(host);
    return sizeof(in);
  }
  auto& in = *reinterpret_cast<sockaddr_in6*>(out);
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(address.port());
  in.sin6_scope_id = address.scope_id();
  std::ranges::copy(bytes, in.sin6_addr.s6_addr);
  return sizeof(in);
}

std::optional<absl::Duration> ToDuration(const timeval& time) {
  if (time.tv_sec < 0 || time.tv_usec < 0 || time.tv_usec >= kMicroseconds) return std::nullopt;
  return absl::DurationFromTimeval(time);
}

}  // namespace esdp::exs
