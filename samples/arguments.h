#ifndef ESDP_SAMPLES_ARGUMENTS_H_
#define ESDP_SAMPLES_ARGUMENTS_H_

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "absl/status/status.h"

// What the small samples share: flags, and an end with the reason when something fails.

namespace samples {

// The value after `name` on the command line, or `otherwise`.
inline const char* Argument(int argc, char** argv, std::string_view name, const char* otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return argv[i + 1];
  }
  return otherwise;
}

inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// The value, or the end.
template <typename StatusOr>
auto Value(StatusOr&& result) {
  Check(result.status());
  return *std::forward<StatusOr>(result);
}

}  // namespace samples

#endif  // ESDP_SAMPLES_ARGUMENTS_H_
