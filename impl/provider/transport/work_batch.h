#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_WORK_BATCH_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_WORK_BATCH_H_

#include <array>
#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "impl/fabric/port.h"

namespace esdp::provider {

// Work for one queue pair, collected over some steps and posted at once: fewer calls, and fewer
// system calls below them.
//
//   Owns:     copies of what was added.
//   Threads:  the holder of the shard lock.
//   Blocks:   never; allocates nothing.
//   Units:    –
//   Errors:   Post forgets the work in any case and returns the first refusal. Adding to a full
//   batch is the caller's fault.
class WorkBatch {
 public:
  static constexpr size_t kSendsMax = 32;
  static constexpr size_t kReceivesMax = 32;
  static constexpr size_t kEntriesPerSend = 6;  // a header and five pieces

  bool empty() const { return sends_ == 0 && receives_ == 0; }
  bool sends_full() const { return sends_ == kSendsMax; }
  bool receives_full() const { return receives_ == kReceivesMax; }

  // What the next AddSend adds, with its first `entry_count` entries. Not when sends_full().
  struct NextSend {
    fabric::SendWork& work;
    std::span<fabric::ScatterEntry, kEntriesPerSend> entries;
  };
  NextSend next_send() {
    send_work_[sends_] = {};
    return {send_work_[sends_], send_entries_[sends_]};
  }
  void AddSend(size_t entry_count) {
    fabric::SendWork& added = send_work_[sends_];
    added.entries = send_entries_[sends_].data();
    added.entry_count = static_cast<uint32_t>(entry_count);
    ++sends_;
  }
  void AddReceive(uint64_t work_id, const fabric::ScatterEntry& entry);

  void Clear() { sends_ = receives_ = 0; }
  // Receives go first: a Send may announce them.
  absl::Status Post(fabric::Fabric& fabric, fabric::QueuePairId queue_pair);

 private:
  std::array<fabric::SendWork, kSendsMax> send_work_;
  std::array<std::array<fabric::ScatterEntry, kEntriesPerSend>, kSendsMax> send_entries_;
  std::array<fabric::ReceiveWork, kReceivesMax> receive_work_;
  std::array<fabric::ScatterEntry, kReceivesMax> receive_entries_;
  size_t sends_ = 0;
  size_t receives_ = 0;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_WORK_BATCH_H_
