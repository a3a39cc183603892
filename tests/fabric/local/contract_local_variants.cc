// local under the contract suite: both fabrics in one process, by addresses of both families; where
// they read each other's memory, where it lies in files that are passed, and where all goes through
// what they share; and where what arrives is lent.

#include "impl/fabric/local/local_fabric.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ContractVariant Variant(const std::string& name, Family family, bool reads_peers) {
  ContractVariant variant;
  variant.name = name;
  variant.host.family = family;
  if (family == Family::kIpv4) variant.host.bytes[12] = 127;
  variant.host.bytes[15] = 1;
  variant.make = [reads_peers] {
    local::LocalOptions options;
    options.reads_peers = reads_peers;
    return std::pair(*local::MakeLocalFabric(options), *local::MakeLocalFabric(options));
  };
  return variant;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  ContractVariant in_files = Variant("Ipv4InFiles", Family::kIpv4, true);
  in_files.in_files = true;
  ContractVariant lent = Variant("Ipv4Lent", Family::kIpv4, true);
  lent.options.lend_messages = true;
  return {
      in_files,
      lent,
      Variant("Ipv4", Family::kIpv4, true),
      Variant("Ipv6", Family::kIpv6, true),
      Variant("Ipv4Strangers", Family::kIpv4, false),
  };
}

}  // namespace esdp::fabric
