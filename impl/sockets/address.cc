#include "esdp/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <span>

#include "impl/base/bytes.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"

namespace esdp {
namespace {

absl::Status BadAddress(std::string_view text) {
  return sockets::MakeError(
      ErrorKind::kInvalidArgument,
      "'" + std::string(text) + "' is no address: write 192.0.2.1:5001 or [2001:db8::1]:5001");
}

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

absl::StatusOr<Address> Address::Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return BadAddress(text);
  std::string_view host = text.substr(0, colon);
  Address address;
  if (!ParseNumber(text.substr(colon + 1), address.port_)) return BadAddress(text);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    address.family_ = Family::kIpv6;
    if (const size_t zone = host.find('%'); zone != std::string_view::npos) {
      if (!ParseNumber(host.substr(zone + 1), address.scope_id_)) return BadAddress(text);
      host = host.substr(0, zone);
    }
    if (inet_pton(AF_INET6, std::string(host).c_str(), address.bytes_.data()) == 1) return address;
  } else if (inet_pton(AF_INET, std::string(host).c_str(), &address.bytes_[12]) == 1) {
    return address;
  }
  return BadAddress(text);
}

Address Address::Any(Family family, uint16_t port) { return Of(family, {}, port); }

Address Address::Loopback(Family family, uint16_t port) {
  std::array<uint8_t, 16> bytes{};
  bytes[15] = 1;
  if (family == Family::kIpv4) bytes[12] = 127;
  return Of(family, bytes, port);
}

Address Address::Of(Family family, const std::array<uint8_t, 16>& bytes, uint16_t port,
                    uint32_t scope_id) {
  Address address;
  address.family_ = family;
  address.bytes_ = bytes;
  address.port_ = port;
  address.scope_id_ = scope_id;
  return address;
}

Address Address::WithPort(uint16_t port) const {
  Address address = *this;
  address.port_ = port;
  return address;
}

std::string Address::ToString() const {
  char host[INET6_ADDRSTRLEN] = {};
  const std::string port = ":" + std::to_string(port_);
  if (family_ == Family::kIpv4) {
    inet_ntop(AF_INET, &bytes_[12], host, sizeof(host));
    return host + port;
  }
  inet_ntop(AF_INET6, bytes_.data(), host, sizeof(host));
  const std::string zone = scope_id_ == 0 ? "" : "%" + std::to_string(scope_id_);
  return "[" + std::string(host) + zone + "]" + port;
}

namespace sockets {

provider::Address ToProvider(const Address& address) {
  provider::Address out;
  out.family =
      address.family() == Family::kIpv4 ? provider::Family::kIpv4 : provider::Family::kIpv6;
  out.port = address.port();
  out.scope_id = address.scope_id();
  out.bytes = address.bytes();
  return out;
}

Address FromProvider(const provider::Address& address) {
  return Address::Of(address.family == provider::Family::kIpv4 ? Family::kIpv4 : Family::kIpv6,
                     address.bytes, address.port, address.scope_id);
}

}  // namespace sockets
}  // namespace esdp
