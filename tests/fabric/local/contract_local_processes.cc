// local under the contract suite, in two processes: side two is a child of this one. Where it is
// killed, it is killed in the middle of whatever a test leaves open.

#include "impl/fabric/local/local_fabric.h"
#include "tests/fabric/contract_harness.h"
#include "tests/fabric/local/remote_fabric.h"

namespace esdp::fabric {
namespace {

std::unique_ptr<Fabric> Make() { return *local::MakeLocalFabric(); }

ContractVariant Variant(const std::string& name, Family family, Farewell farewell) {
  ContractVariant variant;
  variant.name = name;
  variant.host.family = family;
  if (family == Family::kIpv4) variant.host.bytes[12] = 127;
  variant.host.bytes[15] = 1;
  variant.make = [farewell] {
    std::unique_ptr<Fabric> two = MakeRemoteFabric(Make, farewell);
    return std::pair(Make(), std::move(two));
  };
  variant.allocate = AllocateForBoth;
  return variant;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  return {
      Variant("TwoProcesses", Family::kIpv4, Farewell::kOrderly),
      Variant("TwoProcessesOneKilled", Family::kIpv6, Farewell::kKilled),
  };
}

}  // namespace esdp::fabric
