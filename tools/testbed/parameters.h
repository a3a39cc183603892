#ifndef ESDP_TOOLS_TESTBED_PARAMETERS_H_
#define ESDP_TOOLS_TESTBED_PARAMETERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "impl/fabric/sim/testbed/parameters.h"

namespace esdp::testbed {

// The numbers of a file as testbed.proto says. NotFound where it cannot be read. InvalidArgument
// names the file, the line, and what is wrong there: a field, its unit, or a number that no machine
// has.
absl::StatusOr<fabric::sim::testbed::Parameters> ReadParameters(const std::string& path);

}  // namespace esdp::testbed

#endif  // ESDP_TOOLS_TESTBED_PARAMETERS_H_
