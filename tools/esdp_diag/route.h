#ifndef ESDP_TOOLS_ESDP_DIAG_ROUTE_H_
#define ESDP_TOOLS_ESDP_DIAG_ROUTE_H_

#include <string>

#include "absl/status/statusor.h"
#include "esdp/address.h"

namespace esdp_diag {

// By which of our addresses and interfaces packets to an address leave.
struct Route {
  std::string local;      // as text, without a port
  std::string interface;  // empty when no interface has that address
};

// Sends nothing.
absl::StatusOr<Route> RouteTo(const esdp::Address& address);

}  // namespace esdp_diag

#endif  // ESDP_TOOLS_ESDP_DIAG_ROUTE_H_
