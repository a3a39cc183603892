#ifndef ESDP_IMPL_SOCKETS_CONTEXT_UNLOCKED_SHOWS_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_UNLOCKED_SHOWS_H_

#include <memory>
#include <mutex>
#include <vector>

namespace esdp::sockets {

class StreamState;

// Streams whose descriptors are to show what has changed once the shard lock is free: that takes
// system calls, and wakes who then calls the shard.
//
//   Owns:     a reference to each until it has shown.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   Add: false where there is no memory.
class UnlockedShows {
 public:
  [[nodiscard]] bool Add(std::shared_ptr<StreamState> stream);
  void ShowAll();

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<StreamState>> streams_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_UNLOCKED_SHOWS_H_
