#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_POSTING_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_POSTING_H_

#include <cstddef>
#include <cstdint>

#include "impl/provider/transport/transport.h"
#include "impl/provider/transport/work_batch.h"

namespace esdp::provider {

// The work of a shard that is collected and not yet posted. It is one transport's at a time: what
// another one adds posts it first.
//
//   Owns:     the batch.
//   Threads:  the holder of the shard lock.
//   Blocks:   never; allocates nothing.
//   Units:    bytes.
//   Errors:   what the fabric refuses breaks the transport.
class Posting {
 public:
  // To be filled in, and then added.
  WorkBatch::NextSend StageSend(Transport& transport) {
    if (batch_.sends_full()) Flush();
    Stage(transport);
    return batch_.next_send();
  }
  void AddSend(size_t entry_count) { batch_.AddSend(entry_count); }
  // This receive buffer, for so many bytes at most.
  void AddReceive(Transport& transport, uint32_t buffer, uint32_t bytes) {
    if (batch_.receives_full()) Flush();
    Stage(transport);
    batch_.AddReceive(buffer, transport.pool().PostEntry(buffer, bytes));
  }
  // Posts what is collected, and the invalidation of this key, whose completion is named `work_id`.
  // False: the key is dead already.
  bool PostInvalidate(Transport& transport, uint64_t work_id, uint32_t key);

  void Flush() {
    if (staged_ != nullptr) Post();
  }
  // What is collected for this one is not posted.
  void Forget(const Transport& transport);

 private:
  void Stage(Transport& transport) {
    if (staged_ != &transport) Flush();
    staged_ = &transport;
  }
  void Post();

  WorkBatch batch_;
  Transport* staged_ = nullptr;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_POSTING_H_
