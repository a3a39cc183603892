#ifndef ESDP_TOOLS_TESTBED_TEXT_H_
#define ESDP_TOOLS_TESTBED_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace esdp::testbed {

// One number of a test-bed, as its file says it.
struct Number {
  std::string name;  // "machine.cores"
  double value = 0;
  std::string unit;
  std::string source;
  std::string known;  // "FREE"
  int line = 0;       // of the file, from 1 on
};

struct Description {
  std::string name;
  std::vector<Number> numbers;
};

// A file in protobuf's text format, as testbed.proto says. InvalidArgument names line and column,
// "2:16: ...", or what is missing.
absl::StatusOr<Description> ParseText(const std::string& text);
// NotFound where it cannot be read. Errors begin with the path.
absl::StatusOr<Description> ReadFile(const std::string& path);

}  // namespace esdp::testbed

#endif  // ESDP_TOOLS_TESTBED_TEXT_H_
