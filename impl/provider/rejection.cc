#include "impl/provider/rejection.h"

#include <algorithm>

namespace esdp::provider {
namespace {

constexpr std::array kMark = {std::byte{'E'}, std::byte{'S'}, std::byte{'D'}, std::byte{'P'}};

}  // namespace

std::array<std::byte, kRejectionBytes> EncodeRejection(Rejection reason) {
  std::array<std::byte, kRejectionBytes> bytes{};
  std::copy(kMark.begin(), kMark.end(), bytes.begin());
  bytes.back() = static_cast<std::byte>(reason);
  return bytes;
}

// Whatever follows is padding: the connection manager of InfiniBand adds some.
Rejection DecodeRejection(ConstBytes private_data) {
  if (private_data.size() < kRejectionBytes) return Rejection::kNone;
  if (!std::equal(kMark.begin(), kMark.end(), private_data.begin())) return Rejection::kNone;
  const auto reason = static_cast<Rejection>(private_data[kRejectionBytes - 1]);
  return reason <= Rejection::kRate ? reason : Rejection::kNone;
}

const char* ToText(Rejection reason) {
  switch (reason) {
    case Rejection::kNone:
      break;
    case Rejection::kBacklog:
      return "the listener's backlog is full";
    case Rejection::kHalfOpen:
      return "too many connections are being set up (half_open_max)";
    case Rejection::kConnections:
      return "the Context has as many connections as it may have (connections_max)";
    case Rejection::kAddress:
      return "too many connections are open from that address (connections_per_address_max)";
    case Rejection::kRate:
      return "connections come too fast from that address (accept_rate)";
  }
  return "no reason given";
}

}  // namespace esdp::provider
