// The RDMA device under the contract suite. ESDP_VERBS_HOSTS names, separated by spaces, the
// device and an address of it, "rxe0=10.77.0.1"; without it there is nothing to test.

#include <cstdlib>
#include <sstream>

#include "impl/fabric/verbs/verbs_fabric.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

Address ParseIpv4(const std::string& text) {
  Address address;
  std::istringstream in(text);
  char dot = 0;
  for (size_t i = 12; i < 16; ++i) {
    unsigned part = 0;
    in >> part >> dot;
    address.bytes[i] = static_cast<uint8_t>(part);
  }
  return address;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  std::vector<ContractVariant> variants;
  const char* hosts = std::getenv("ESDP_VERBS_HOSTS");
  std::istringstream in(hosts == nullptr ? "" : hosts);
  std::string host;
  while (in >> host) {
    const size_t equals = host.find('=');
    verbs::VerbsOptions options;
    options.device = host.substr(0, equals);
    ContractVariant variant;
    variant.name = options.device;
    variant.host = ParseIpv4(host.substr(equals + 1));
    variant.make = [options] {
      return std::pair(*verbs::MakeVerbsFabric(options), *verbs::MakeVerbsFabric(options));
    };
    variants.push_back(variant);
  }
  return variants;
}

}  // namespace esdp::fabric
