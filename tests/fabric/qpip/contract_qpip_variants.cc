// qpip under the contract suite: both families, with and without checksums, with socket buffers so
// small that every large message stops in the middle, and with pages that are lent.

#include "impl/fabric/qpip/qpip_fabric.h"
#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

ContractVariant Variant(const std::string& name, Family family, const qpip::QpipOptions& options) {
  ContractVariant variant;
  variant.name = name;
  variant.host.family = family;
  if (family == Family::kIpv4) variant.host.bytes[12] = 127;
  variant.host.bytes[15] = 1;
  variant.make = [options] {
    return std::pair(*qpip::MakeQpipFabric(options), *qpip::MakeQpipFabric(options));
  };
  return variant;
}

}  // namespace

std::vector<ContractVariant> ContractVariants() {
  qpip::QpipOptions summed;
  summed.checksum = true;
  qpip::QpipOptions narrow;
  narrow.send_buffer_bytes = 4096;
  narrow.receive_buffer_bytes = 4096;
  qpip::QpipOptions narrow_and_summed = narrow;
  narrow_and_summed.checksum = true;
  qpip::QpipOptions lending;
  lending.lend_pages = true;
  qpip::QpipOptions narrow_and_lending = narrow_and_summed;
  narrow_and_lending.lend_pages = true;
  return {
      Variant("Ipv4", Family::kIpv4, {}),
      Variant("Ipv6", Family::kIpv6, {}),
      Variant("Ipv4Summed", Family::kIpv4, summed),
      Variant("Ipv4Narrow", Family::kIpv4, narrow),
      Variant("Ipv6NarrowAndSummed", Family::kIpv6, narrow_and_summed),
      Variant("Ipv4Lending", Family::kIpv4, lending),
      Variant("Ipv6NarrowSummedLending", Family::kIpv6, narrow_and_lending),
  };
}

}  // namespace esdp::fabric
