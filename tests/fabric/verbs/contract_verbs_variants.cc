// The RDMA device under the contract suite. ESDP_VERBS_HOSTS names, separated by spaces, the
// device and an address of it, "rxe0=10.77.0.1"; without it there is nothing to test. With
// ESDP_VERBS_MEETS_QPIP the device is at one end, and qpip in this process at the other: two
// implementations of iWARP that know nothing of each other.

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <sstream>

#include "impl/fabric/qpip/qpip_fabric.h"
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

using Maker = std::function<std::unique_ptr<Fabric>()>;

// What siw does in its own way.
std::map<std::string, std::string> NotOn(const std::string& device, bool qpip_calls) {
  if (device.rfind("siw", 0) != 0) return {};
  std::map<std::string, std::string> not_here = {
      {"DepthsAreTheSmallerOfBothSides",
       "siw raises what the accepting side offers to what the connecting side asks for"},
      {"AnAbruptEndWaitsForNobody",
       "siw by itself ends a stream whose messages no receive takes, between two posts or later"}};
  if (qpip_calls) {
    // A peer that goes early breaks Linux 6.1 itself.
    const char* const deaf = "siw stops to listen when a connection ends before it was taken up";
    not_here["DisconnectNeedsAConnection"] = deaf;
    not_here["DestroyGivesUpAConnect"] = deaf;
    not_here["NothingHappensUnderAnotherCaller"] = deaf;
    not_here["AnUnansweredConnectTimesOut"] =
        "iw_cm stops the kernel when a connection is accepted that has ended on siw";
  }
  return not_here;
}

ContractVariant VariantOf(const std::string& name, const Address& host, const Maker& one,
                          const Maker& two) {
  ContractVariant variant;
  variant.name = name;
  variant.host = host;
  variant.make = [one, two] { return std::pair(one(), two()); };
  return variant;
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
    const auto device = [options] { return *verbs::MakeVerbsFabric(options); };
    const auto qpip = [] { return *qpip::MakeQpipFabric({}); };
    const Address address = ParseIpv4(host.substr(equals + 1));
    if (std::getenv("ESDP_VERBS_MEETS_QPIP") == nullptr) {
      variants.push_back(VariantOf(options.device, address, device, device));
      variants.back().not_here = NotOn(options.device, false);
    } else {
      variants.push_back(VariantOf(options.device + "_calls_qpip", address, device, qpip));
      variants.back().not_here = NotOn(options.device, false);
      variants.push_back(VariantOf("qpip_calls_" + options.device, address, qpip, device));
      variants.back().not_here = NotOn(options.device, true);
    }
  }
  return variants;
}

}  // namespace esdp::fabric
