#ifndef ESDP_TOOLS_ESDP_GET_FETCH_H_
#define ESDP_TOOLS_ESDP_GET_FETCH_H_

#include "tools/esdp_get/connection.h"
#include "tools/esdp_get/options.h"

namespace esdp_get {

// The exit codes of the program.
inline constexpr int kAgain = 1;
inline constexpr int kNotUnderstood = 2;
inline constexpr int kFailed = 3;

int CodeOf(const absl::Status& status);
// Says on standard error what failed; gives its code.
int Complain(const std::string& name, const absl::Status& status);

// What was asked for with "get", and how it ends.
int Fetch(Connection& connection, const Options& options);

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_FETCH_H_
