#ifndef ESDP_IMPL_FABRIC_VERBS_COMPLETION_QUEUES_H_
#define ESDP_IMPL_FABRIC_VERBS_COMPLETION_QUEUES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "impl/fabric/verbs/device.h"

namespace esdp::fabric::verbs {

// Completion queues that many queue pairs share, and the channel that tells of arrivals. A queue
// pair reserves as many entries as it can have work posted, so that none overflows.
//
//   Owns:     the queues and the channel.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    entries.
//   Errors:   Reserve: ResourceExhausted when the device has no more.
class CompletionQueues {
 public:
  explicit CompletionQueues(Device& device) : device_(device) {}
  ~CompletionQueues();
  CompletionQueues(const CompletionQueues&) = delete;
  CompletionQueues& operator=(const CompletionQueues&) = delete;

  absl::Status Open();
  int fd() const { return channel_->fd; }

  absl::StatusOr<ibv_cq*> Reserve(int entries);
  void Release(ibv_cq* queue, int entries);

  // Takes completions out, from all queues in turn: the next call begins behind the last of them.
  size_t Poll(absl::Span<ibv_wc> completions);
  // Takes one notice off the channel, which is readable. It may be late: what it tells of has been
  // polled then, and the queue has to be armed once more.
  void TakeNotice();
  // Asks the channel to tell of the next arrival in queues that were found empty. What arrived
  // before is found by a Poll behind this.
  void Arm();
  bool armed() const { return armed_; }

 private:
  struct Queue {
    ibv_cq* queue = nullptr;
    int reserved = 0;
    bool armed = false;
  };

  static constexpr int kEntries = 16 * 1024;
  // libsiw takes what its kernel maps at 0x90000 for a refusal. Queues of this size, made before
  // anything else, lie over that place.
  static constexpr int kEntriesIwarp = 32 * 1024;

  Device& device_;
  ibv_comp_channel* channel_ = nullptr;
  std::vector<Queue> queues_;
  size_t next_ = 0;
  bool armed_ = false;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_COMPLETION_QUEUES_H_
