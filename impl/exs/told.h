#ifndef ESDP_IMPL_EXS_TOLD_H_
#define ESDP_IMPL_EXS_TOLD_H_

#include <memory>

#include "impl/exs/operation.h"
#include "impl/exs/queue.h"

namespace esdp::exs {

// An operation of which the event is in its queue. It keeps the queue, which the application may
// delete once it has taken the event.
class Told {
 public:
  // With the lock of the socket.
  Told(Operation& operation, const exs_event_t& event)
      : queue_(operation.queue->shared_from_this()), operation_(&operation) {
    queue_->Deliver(event);
  }
  // Without it: the operation is over, and whoever waits for the event has it.
  void Announce() const {
    queue_->Recycle(*operation_);
    queue_->Announce();
  }

 private:
  std::shared_ptr<Queue> queue_;
  Operation* operation_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_TOLD_H_
