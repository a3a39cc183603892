#ifndef ESDP_IMPL_SOCKETS_STREAM_RECEIVE_RANGES_H_
#define ESDP_IMPL_SOCKETS_STREAM_RECEIVE_RANGES_H_

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "esdp/event.h"

namespace esdp::sockets {

#ifdef NDEBUG
inline constexpr bool kReceivesAreWatched = false;
#else
inline constexpr bool kReceivesAreWatched = true;
#endif

// Which bytes are being received into, and by which operations. Two receives into the same bytes,
// be it through two regions, leave there what nobody can tell: debug builds refuse the second.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never beyond its own short lock. Allocates only while more is claimed than ever
//             before.
//   Units:    bytes.
//   Errors:   –
class ReceiveRanges {
 public:
  // False, and these are not claimed, when one of them is claimed already, by whomever.
  bool Claim(OpId by, std::span<const std::byte> bytes);
  // All that it has claimed.
  void Release(OpId by);

 private:
  struct Range {
    OpId by;
    const std::byte* begin;
    const std::byte* end;
  };

  std::mutex mutex_;
  std::vector<Range> claimed_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_RECEIVE_RANGES_H_
