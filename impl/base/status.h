#ifndef ESDP_IMPL_BASE_STATUS_H_
#define ESDP_IMPL_BASE_STATUS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Debian's Abseil has a string_view type of its own and no status macros: both gaps are closed
// here.

namespace esdp {

inline absl::string_view ToAbsl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

inline std::string_view FromAbsl(absl::string_view text) {
  return std::string_view(text.data(), text.size());
}

// `text` says what happened and what the caller can do about it.
[[gnu::cold]] inline absl::Status MakeStatus(absl::StatusCode code, std::string_view text) {
  return absl::Status(code, ToAbsl(text));
}

}  // namespace esdp

// Ends the function with the status of `expression`, an absl::Status, unless it is OK.
#define ESDP_RETURN_IF_ERROR(expression)                              \
  do {                                                                \
    if (absl::Status esdp_status = (expression); !esdp_status.ok()) { \
      return esdp_status;                                             \
    }                                                                 \
  } while (false)

// Sets `target`, a variable or a declaration of one, from the absl::StatusOr that `expression`
// gives, or ends the function with its status. It is two statements: not for an `if` without
// braces.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
#define ESDP_ASSIGN_OR_RETURN(target, expression) \
  ESDP_ASSIGN_OR_RETURN_AS(ESDP_JOIN(esdp_status_or_, __LINE__), target, expression)

#define ESDP_ASSIGN_OR_RETURN_AS(name, target, expression) \
  auto name = (expression);                                \
  if (!name.ok()) return std::move(name).status();         \
  target = *std::move(name)
// NOLINTEND(bugprone-macro-parentheses)

#define ESDP_JOIN(a, b) ESDP_JOIN_NOW(a, b)
#define ESDP_JOIN_NOW(a, b) a##b

#endif  // ESDP_IMPL_BASE_STATUS_H_
