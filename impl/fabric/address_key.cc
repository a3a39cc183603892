#include "impl/fabric/address_key.h"

#include <algorithm>

namespace esdp::fabric {

AddressKey KeyOf(const Address& peer) {
  constexpr size_t kNetwork = 8;
  AddressKey key = peer.bytes;
  const bool is_whole = std::all_of(key.begin(), key.begin() + kNetwork, [](uint8_t byte) {
    return byte == 0;  // also those of IPv4
  });
  if (!is_whole) std::fill(key.begin() + kNetwork, key.end(), uint8_t{0});
  return key;
}

}  // namespace esdp::fabric
