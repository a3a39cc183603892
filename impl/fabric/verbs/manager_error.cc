#include "impl/fabric/verbs/manager_error.h"

#include <cerrno>
#include <cstring>

#include "impl/base/status.h"
#include "impl/fabric/verbs/held_port.h"

namespace esdp::fabric::verbs {
namespace {

bool IsOfThisHost(Address address) {
  address.port = 0;
  const HeldPort held = HeldPort::Take(address);
  return address.port != 0;
}

}  // namespace

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

absl::Status BindError(const std::string& what, const Address& address) {
  if (const int error = errno; error == EADDRNOTAVAIL) {
    errno = IsOfThisHost(address) ? EADDRINUSE : error;
  }
  return ManagerError(what);
}

}  // namespace esdp::fabric::verbs
