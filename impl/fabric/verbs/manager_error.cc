#include "impl/fabric/verbs/manager_error.h"

#include <cerrno>
#include <cstring>

#include "impl/base/status.h"

namespace esdp::fabric::verbs {

absl::Status ManagerError(const std::string& what) {
  const int error = errno;
  const std::string text = what + ": " + strerror(error);
  switch (error) {
    case EADDRINUSE:
      return MakeStatus(absl::StatusCode::kAlreadyExists, text);
    case EADDRNOTAVAIL:
    case ENODEV:
    case EINVAL:
      return MakeStatus(absl::StatusCode::kInvalidArgument, text);
    case EACCES:
    case EPERM:
      return MakeStatus(absl::StatusCode::kPermissionDenied, text);
    default:
      return MakeStatus(absl::StatusCode::kResourceExhausted, text);
  }
}

}  // namespace esdp::fabric::verbs
