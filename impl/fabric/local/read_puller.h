#ifndef ESDP_IMPL_FABRIC_LOCAL_READ_PULLER_H_
#define ESDP_IMPL_FABRIC_LOCAL_READ_PULLER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/local/windows.h"
#include "impl/fabric/soft/work_queue.h"

namespace esdp::fabric::local {

// RDMA Read without the peer's help, one at a time: the bytes of a window that it shows are read
// out of its memory. What a peer shows of that is true as far as it wants it to be: it can only
// name memory of its own.
//
//   Owns:     how far the read has come.
//   Threads:  not thread-safe.
//   Blocks:   for the copy of what the budget allows.
//   Units:    bytes.
//   Errors:   kAsk: whatever the reason, the peer is asked, and refuses what is to be refused.
class ReadPuller {
 public:
  enum class Outcome : uint8_t { kAsk, kMore, kDone };

  // Goes on with the read, by no more than `budget`, from which it takes what it has used.
  Outcome Pull(const soft::SendSlot& read, const soft::EntryList& entries,
               const WindowTable& windows, PeerProcess& process, size_t& budget);

 private:
  Outcome Begin(const soft::SendSlot& read, const WindowTable& windows);
  // So many bytes have come; 0: they cannot be had.
  size_t PullSome(const soft::SendSlot& read, const soft::EntryList& entries, PeerProcess& process,
                  size_t most);

  std::optional<ShownWindow> window_;  // of the read that has begun
  soft::Place place_;
  uint32_t pulled_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_READ_PULLER_H_
