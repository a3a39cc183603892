#include "impl/exs/poll_own.h"

#include "sys/exs.h"

namespace esdp::exs {

bool CanPollOwn() { return false; }

absl::StatusOr<OpId> PollOwn(Socket&, short, const OpArgs&) {
  return absl::UnimplementedError("readiness of a socket");
}

short ReadyOf(const Event& event, short events) {
  return event.ok() ? events : static_cast<short>(EXS_POLLERR);
}

short RefusedOf(const absl::Status&) { return EXS_POLLERR; }

}  // namespace esdp::exs
