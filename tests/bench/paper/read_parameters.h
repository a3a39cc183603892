#ifndef ESDP_TESTS_BENCH_PAPER_READ_PARAMETERS_H_
#define ESDP_TESTS_BENCH_PAPER_READ_PARAMETERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "impl/fabric/sim/testbed/parameters.h"

namespace esdp::paper {

// Of a file as tools/testbed/testbed.proto says.
absl::StatusOr<fabric::sim::testbed::Parameters> ReadParameters(const std::string& path);

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_READ_PARAMETERS_H_
