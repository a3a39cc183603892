#ifndef ESDP_TESTS_BENCH_PAPER_SENSITIVITY_H_
#define ESDP_TESTS_BENCH_PAPER_SENSITIVITY_H_

#include <string>
#include <vector>

#include "tests/bench/paper/results.h"

namespace esdp::paper {

// The statements that hold on a test-bed and do not once this number of it is another one.
struct Loss {
  std::string parameter;
  double value = 0;
  std::vector<std::string> lost;
};

// For each number by a tenth less and a tenth more; counts of things by one, at least.
std::vector<Loss> FindLosses(const fabric::sim::testbed::Parameters& parameters);

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_SENSITIVITY_H_
