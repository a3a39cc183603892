// local under the contract suite: both fabrics in one process, by addresses of both families.

#include "impl/fabric/local/local_fabric.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ContractVariant Variant(const std::string& name, Family family) {
  ContractVariant variant;
  variant.name = name;
  variant.host.family = family;
  if (family == Family::kIpv4) variant.host.bytes[12] = 127;
  variant.host.bytes[15] = 1;
  variant.make = [] { return std::pair(*local::MakeLocalFabric(), *local::MakeLocalFabric()); };
  return variant;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  return {Variant("Ipv4", Family::kIpv4), Variant("Ipv6", Family::kIpv6)};
}

}  // namespace esdp::fabric
