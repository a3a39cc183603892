#ifndef ESDP_IMPL_SOCKETS_FILE_LANE_TRANSFERS_H_
#define ESDP_IMPL_SOCKETS_FILE_LANE_TRANSFERS_H_

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "impl/sockets/file/slot_pool.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

// The transfer of one lane.
struct LaneTransfer : OperationTransfer {
  size_t lane = 0;
};
using LaneTransfers = std::array<LaneTransfer, SlotPool::kSlotsOfTransfer>;

// A cancel that comes late looks at the transfer that it means: these stay transfers as long as the
// Context lives, one operation's after the other's.
//
//   Owns:     them.
//   Threads:  any.
//   Blocks:   never beyond its own short lock.
//   Units:    –
//   Errors:   Take throws std::bad_alloc.
class LaneTransferPool {
 public:
  LaneTransfers* Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);  // Give must not allocate
      all_.push_back(std::make_unique<LaneTransfers>());
      return all_.back().get();
    }
    LaneTransfers* const taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void Give(LaneTransfers* transfers) {
    const std::lock_guard lock(mutex_);
    free_.push_back(transfers);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<LaneTransfers>> all_;
  std::vector<LaneTransfers*> free_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_LANE_TRANSFERS_H_
