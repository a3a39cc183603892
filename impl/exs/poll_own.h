#ifndef ESDP_IMPL_EXS_POLL_OWN_H_
#define ESDP_IMPL_EXS_POLL_OWN_H_

#include "absl/status/statusor.h"
#include "esdp/event.h"
#include "esdp/socket.h"

// The readiness of a socket of this library, in bits of exs_pollfd_t.

namespace esdp::exs {

// Asks below when a socket is ready for `events`.
absl::StatusOr<OpId> PollOwn(Socket& socket, short events, const OpArgs& args);
// What the event of it says.
short ReadyOf(const Event& event);
// What it means that it could not be asked.
short RefusedOf(const absl::Status& status);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_POLL_OWN_H_
