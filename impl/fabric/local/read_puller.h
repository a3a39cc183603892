#ifndef ESDP_IMPL_FABRIC_LOCAL_READ_PULLER_H_
#define ESDP_IMPL_FABRIC_LOCAL_READ_PULLER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/local/peer_regions.h"
#include "impl/fabric/local/windows.h"
#include "impl/fabric/soft/work_queue.h"

namespace esdp::fabric::local {

// RDMA Read without the peer's help, one at a time: the bytes of a window that it shows are copied
// out of the mapping of its region, or read out of its memory by the system. What a peer shows of that is true as far as it wants it to be: it can only
// name memory of its own.
//
//   Owns:     how far the read has come.
//   Threads:  not thread-safe.
//   Blocks:   for the copy of what the budget allows.
//   Units:    bytes.
//   Errors:   kAsk: whatever the reason, the peer is asked, and refuses what is to be refused.
class ReadPuller {
 public:
  enum class Outcome : uint8_t {
    kAsk,
    kMore,
    kDone,
    kNotPassed,  // it lies in a file that has not come yet
  };

  // Goes on with the read, by no more than `budget`, from which it takes what it has used.
  Outcome Pull(const soft::SendSlot& read, const soft::EntryList& entries,
               const WindowTable& windows, PeerProcess& process, PeerRegions& regions,
               size_t& budget);

 private:
  Outcome Begin(const soft::SendSlot& read, const WindowTable& windows, const PeerProcess& process,
                const PeerRegions& regions);
  // So many bytes have come; 0: they cannot be had.
  size_t PullSome(const soft::SendSlot& read, const soft::EntryList& entries, PeerProcess& process,
                  size_t most);
  // The same out of the mapping of the peer's region.
  size_t CopySome(const soft::SendSlot& read, const soft::EntryList& entries, PeerRegions& regions,
                  size_t most);

  std::optional<ShownWindow> window_;  // of the read that has begun
  soft::Place place_;
  uint32_t pulled_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_READ_PULLER_H_
