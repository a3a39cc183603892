#include "impl/provider/transport/posting.h"

#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace esdp::provider {

void Posting::Post() {
  Transport* transport = std::exchange(staged_, nullptr);
  if (batch_.empty()) return;
  try {
    const absl::Status status = batch_.Post(transport->fabric(), transport->queue_pair());
    if (!status.ok()) transport->Break(status);
  } catch (const std::bad_alloc&) {
    // Not given up: its session may be in the middle of a step.
    batch_.Clear();
    transport->Break(absl::ResourceExhaustedError("no memory"));
  }
}

// Alone in its batch: the peer may have invalidated the key a moment ago, and then the post is
// refused.
bool Posting::PostInvalidate(Transport& transport, uint64_t work_id, uint32_t key) {
  Flush();
  fabric::SendWork work;
  work.work_id = work_id;
  work.opcode = fabric::Opcode::kInvalidate;
  work.invalidate_key = key;
  const absl::Status status =
      transport.fabric().PostSend(transport.queue_pair(), absl::MakeConstSpan(&work, 1));
  if (status.code() == absl::StatusCode::kNotFound) return false;
  if (!status.ok()) transport.Break(status);  // its loss takes all keys back
  return true;
}

void Posting::Forget(const Transport& transport) {
  if (staged_ != &transport) return;
  staged_ = nullptr;
  batch_.Clear();
}

}  // namespace esdp::provider
