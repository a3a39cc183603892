#include "impl/fabric/soft/fabric_frame.h"

namespace esdp::fabric::soft {

absl::Status UnknownQueuePair() {
  return absl::NotFoundError("no such queue pair: it was never created here, or is destroyed");
}

absl::Status QueuePairAlreadyUsed() {
  return absl::FailedPreconditionError("a queue pair connects once: create another");
}

absl::Status WindowNeedsAReadyQueuePair() {
  return absl::FailedPreconditionError("a window is bound while the queue pair is ready");
}

absl::Status UnbindOfAConnectedQueuePair() {
  return absl::FailedPreconditionError("the queue pair is connected: post kInvalidate instead");
}

absl::StatusOr<QueuePairOptions> FitOptions(const QueuePairOptions& options, const Limits& limits) {
  if (options.send_work > limits.send_work_max || options.receive_work > limits.receive_work_max) {
    return absl::OutOfRangeError("more work than limits().send_work_max or receive_work_max");
  }
  QueuePairOptions fitted = options;
  fitted.initiator_depth = std::min(options.initiator_depth, limits.reads_in_flight_max);
  fitted.responder_resources = std::min(options.responder_resources, limits.reads_in_flight_max);
  return fitted;
}

}  // namespace esdp::fabric::soft
