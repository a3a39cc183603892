#include "impl/provider/transport/work_batch.h"

namespace esdp::provider {

void WorkBatch::AddReceive(uint64_t work_id, const fabric::ScatterEntry& entry) {
  receive_entries_[receives_] = entry;
  receive_work_[receives_] = {work_id, &receive_entries_[receives_], 1};
  ++receives_;
}

absl::Status WorkBatch::Post(fabric::Fabric& fabric, fabric::QueuePairId queue_pair) {
  absl::Status status;
  if (receives_ > 0) {
    status.Update(
        fabric.PostReceive(queue_pair, absl::MakeConstSpan(receive_work_.data(), receives_)));
    receives_ = 0;
  }
  if (sends_ > 0) {
    status.Update(fabric.PostSend(queue_pair, absl::MakeConstSpan(send_work_.data(), sends_)));
    sends_ = 0;
  }
  return status;
}

}  // namespace esdp::provider
