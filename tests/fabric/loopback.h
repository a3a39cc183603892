#ifndef ESDP_TESTS_FABRIC_LOOPBACK_H_
#define ESDP_TESTS_FABRIC_LOOPBACK_H_

#include <cstdint>

#include "impl/fabric/types.h"

namespace esdp::fabric {

inline Address Loopback(uint16_t port) {
  Address address;
  address.bytes[12] = 127;
  address.bytes[15] = 1;
  address.port = port;
  return address;
}

}  // namespace esdp::fabric

#endif  // ESDP_TESTS_FABRIC_LOOPBACK_H_
