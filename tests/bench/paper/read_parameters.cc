#include "tests/bench/paper/read_parameters.h"

#include "tools/testbed/text.h"

namespace esdp::paper {

absl::StatusOr<fabric::sim::testbed::Parameters> ReadParameters(const std::string& path) {
  const absl::StatusOr<testbed::Description> read = testbed::ReadFile(path);
  if (!read.ok()) return read.status();
  fabric::sim::testbed::Parameters parameters;
  for (const testbed::Number& number : read->numbers) {
    double* value = fabric::sim::testbed::Find(parameters, number.name);
    if (value == nullptr) return absl::InvalidArgumentError(number.name + " is no parameter");
    *value = number.value;
  }
  if (absl::Status status = Check(parameters); !status.ok()) return status;
  return parameters;
}

}  // namespace esdp::paper
