#ifndef ESDP_IMPL_FABRIC_LOCAL_WRITE_PULLER_H_
#define ESDP_IMPL_FABRIC_LOCAL_WRITE_PULLER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"
#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/local/peer_regions.h"

namespace esdp::fabric::local {

// Where bytes of an RDMA Write lie: in a file that was passed, or in the writer's memory.
struct WriteSource {
  uint64_t region = 0;   // 0: none
  uint64_t address = 0;  // in the process; with a region the offset in its file
  uint64_t length = 0;
};
inline constexpr size_t kWriteSourcesMax = 4;  // that fit a slot

// The peer's RDMA Writes of which it has only told where the bytes lie, one at a time: this end
// takes them from there, after it has looked up the key.
//
//   Owns:     what was told of the write, and how far it has come.
//   Threads:  not thread-safe.
//   Blocks:   for the copy of what the budget allows.
//   Units:    bytes.
//   Errors:   Begin: false for what cannot be. Pull: the bytes are not there.
class WritePuller {
 public:
  // kNotPassed: they lie in a file that has not come yet.
  enum class Outcome : uint8_t { kMore, kDone, kNotPassed, kFailed };

  bool active() const { return active_; }
  uint64_t pulled() const { return pulled_; }
  // `told` is copied before it is looked at: `length` bytes in several places.
  bool Begin(ConstBytes told, uint32_t length);
  // Into the rest of the target, which begins where the last call has ended.
  Outcome Pull(Bytes rest, PeerProcess& process, PeerRegions& regions, size_t& budget);
  void End() { active_ = false; }

 private:
  Outcome PullSome(Bytes to, PeerProcess& process, PeerRegions& regions, size_t& bytes) const;

  bool active_ = false;
  bool reads_process_ = false;
  std::array<WriteSource, kWriteSourcesMax> sources_{};
  size_t source_ = 0;
  uint64_t offset_ = 0;  // in it
  uint64_t pulled_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_WRITE_PULLER_H_
