#ifndef ESDP_IMPL_FABRIC_SIM_TESTBED_PARAMETERS_H_
#define ESDP_IMPL_FABRIC_SIM_TESTBED_PARAMETERS_H_

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "impl/base/time.h"

namespace esdp::fabric::sim::testbed {

// A test-bed of two like hosts in numbers: parameters.def says what each means. 1 MB is 10^6 bytes,
// 1 KiB 1024.
struct Parameters {
#define TESTBED_PARAMETER(group, name) double group##_##name = 0;
#include "impl/fabric/sim/testbed/parameters.def"
#undef TESTBED_PARAMETER
};

// "machine.cores" and so on, in the order of parameters.def.
std::span<const std::string_view> ParameterNames();
// Null for a name that there is not.
double* Find(Parameters& parameters, std::string_view name);
// InvalidArgument, which names it, where a number is not positive or makes no sense with another.
absl::Status Check(const Parameters& parameters);

inline Duration Microseconds(double microseconds) {
  return Duration(std::llround(microseconds * 1000));
}

}  // namespace esdp::fabric::sim::testbed

#endif  // ESDP_IMPL_FABRIC_SIM_TESTBED_PARAMETERS_H_
