// The simulated fabrics under the contract suite: of the iWARP and of the InfiniBand family, each
// from several seeds.

#include "impl/fabric/sim/sim_fabric.h"
#include "impl/fabric/sim/world.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ContractVariant Variant(const std::string& name, Family family, bool initiator_speaks_first,
                        uint64_t seed) {
  ContractVariant variant;
  variant.name = name;
  variant.host.family = family;
  variant.host.bytes[15] = 1;
  variant.make = [initiator_speaks_first, seed] {
    const std::shared_ptr<sim::World> world = *sim::MakeWorld({.seed = seed});
    Limits limits = sim::DefaultSimLimits();
    limits.initiator_speaks_first = initiator_speaks_first;
    return std::pair(*sim::MakeSimFabric(world, limits), *sim::MakeSimFabric(world, limits));
  };
  return variant;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  return {
      Variant("SimIwarpSeed1", Family::kIpv4, true, 1),
      Variant("SimIwarpSeed2", Family::kIpv6, true, 2),
      Variant("SimInfinibandSeed1", Family::kIpv4, false, 1),
      Variant("SimInfinibandSeed2", Family::kIpv6, false, 2),
  };
}

}  // namespace esdp::fabric
