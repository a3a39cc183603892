// The simulated fabrics under the contract suite: of the iWARP and of the InfiniBand family, each
// from two seeds, one of which lends. ESDP_SEED=n runs others.

#include <cstdlib>

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
  const char* text = std::getenv("ESDP_SEED");
  const uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 0);
  std::vector<ContractVariant> variants;
  for (const bool initiator_speaks_first : {true, false}) {
    const std::string family = initiator_speaks_first ? "SimIwarp" : "SimInfiniband";
    variants.push_back(Variant(family + "Seed" + std::to_string(seed), Family::kIpv4,
                               initiator_speaks_first, seed));
    variants.push_back(Variant(family + "Seed" + std::to_string(seed + 1), Family::kIpv6,
                               initiator_speaks_first, seed + 1));
    variants.back().options.lend_messages = true;
  }
  return variants;
}

}  // namespace esdp::fabric
