#ifndef ESDP_IMPL_EXS_POLL_OWN_H_
#define ESDP_IMPL_EXS_POLL_OWN_H_

#include "absl/status/statusor.h"
#include "esdp/event.h"
#include "esdp/socket.h"

namespace esdp::exs {

// Whether the library below tells readiness at all.
bool CanPollOwn();
// Asks below when a socket of this library is ready for `events`, bits of exs_pollfd_t.
absl::StatusOr<OpId> PollOwn(Socket& socket, short events, const OpArgs& args);
// What such an event says, in bits of exs_pollfd_t.
short ReadyOf(const Event& event, short events);
// What it means that it could not be asked.
short RefusedOf(const absl::Status& status);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_POLL_OWN_H_
