#ifndef ESDP_IMPL_FABRIC_ADDRESS_KEY_H_
#define ESDP_IMPL_FABRIC_ADDRESS_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "impl/fabric/types.h"

namespace esdp::fabric {

// What counts as one address where peers are counted by address: a host of IPv4, or a network of
// IPv6, its first 64 bits, since one host has all of them.
using AddressKey = std::array<uint8_t, 16>;

AddressKey KeyOf(const Address& peer);

struct AddressKeyHash {
  size_t operator()(const AddressKey& bytes) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_ADDRESS_KEY_H_
