#ifndef ESDP_IMPL_SOCKETS_CONVERT_H_
#define ESDP_IMPL_SOCKETS_CONVERT_H_

#include <chrono>

#include "absl/time/time.h"
#include "esdp/address.h"
#include "esdp/operation.h"
#include "impl/base/time.h"
#include "impl/provider/types.h"

// The same values in the application's types and in the provider's.

namespace esdp::sockets {

provider::Address ToProvider(const Address& address);
Address FromProvider(const provider::Address& address);

inline provider::CancelMode ToProvider(CancelMode mode) {
  return mode == CancelMode::kAbortConnection ? provider::CancelMode::kAbortConnection
                                              : provider::CancelMode::kIfNotStarted;
}

inline Duration ToDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return kDurationInfinite;
  return std::chrono::nanoseconds(absl::ToInt64Nanoseconds(duration));
}

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONVERT_H_
