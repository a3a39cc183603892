#ifndef ESDP_ADDRESS_H_
#define ESDP_ADDRESS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace esdp {

enum class Family : uint8_t { kIpv4 = 4, kIpv6 = 6 };

// An Address is one end of a connection: an IP address and a port, as a plain value.
//
//   Owns:     -
//   Threads:  a value.
//   Blocks:   never: no name is ever looked up.
//   Units:    the port is in host order.
//   Errors:   Parse only: InvalidArgument, whose text shows the two accepted forms.
class Address {
 public:
  Address() = default;  // 0.0.0.0:0

  // "192.0.2.1:5001", "[2001:db8::1]:5001", "[fe80::1%2]:5001" (zone as a number).
  static absl::StatusOr<Address> Parse(std::string_view text);
  // For listening on every local address. Port 0: any free port, which Socket::local() tells after
  // Listen.
  static Address Any(Family family, uint16_t port);
  static Address Loopback(Family family, uint16_t port);
  // `bytes`: IPv4 in the last four, the first twelve zero.
  static Address Of(Family family, const std::array<uint8_t, 16>& bytes, uint16_t port,
                    uint32_t scope_id = 0);

  Family family() const { return family_; }
  uint16_t port() const { return port_; }
  uint32_t scope_id() const { return scope_id_; }  // IPv6 link-local only
  const std::array<uint8_t, 16>& bytes() const { return bytes_; }
  Address WithPort(uint16_t port) const;

  std::string ToString() const;  // a form that Parse reads
  friend bool operator==(const Address&, const Address&) = default;

 private:
  Family family_ = Family::kIpv4;
  uint16_t port_ = 0;
  uint32_t scope_id_ = 0;
  std::array<uint8_t, 16> bytes_{};
};

}  // namespace esdp

#endif  // ESDP_ADDRESS_H_
