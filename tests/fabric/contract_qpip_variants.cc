// qpip under the contract suite: over IPv4 and IPv6, and with CRC32C on every frame.

#include "impl/fabric/qpip/qpip_fabric.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ContractVariant Variant(const std::string& name, Family family, bool checksum) {
  ContractVariant variant;
  variant.name = name;
  variant.host.family = family;
  variant.host.bytes[15] = 1;  // ::1, or the last byte of 127.0.0.1
  if (family == Family::kIpv4) variant.host.bytes[12] = 127;
  variant.options.checksum = checksum;
  variant.make = [] { return std::pair(*qpip::MakeQpipFabric(), *qpip::MakeQpipFabric()); };
  return variant;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  return {
      Variant("QpipIpv4", Family::kIpv4, false),
      Variant("QpipIpv6", Family::kIpv6, false),
      Variant("QpipIpv4Checksum", Family::kIpv4, true),
  };
}

}  // namespace esdp::fabric
